package dispatcher

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// forNumbers has a command done by the owner of each number; all must say the same.
func (w *world) forNumbers(c record.Command, numbers ...int32) record.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c.By = "test"
	results, err := w.control.DoNumbers(ctx, c, numbers...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range results {
		if r.Pending || r.Result.Result != results[0].Result.Result {
			w.t.Fatalf("%s: %+v", c.Action, results)
		}
	}
	return results[0].Result
}

// hold holds, release releases, and both must be done.
func (w *world) hold(scope record.HoldScope, value string) string {
	w.t.Helper()
	return w.holdOr(record.ActionHold, scope, value)
}

func (w *world) release(scope record.HoldScope, value string) string {
	w.t.Helper()
	return w.holdOr(record.ActionRelease, scope, value)
}

func (w *world) holdOr(action record.Action, scope record.HoldScope, value string) string {
	w.t.Helper()
	var r record.Result
	if scope == record.HoldWebhook {
		r = w.do(value, action, func(c *record.Command) { c.Scope, c.Value, c.Reason = scope, value, "incident 7" })
	} else {
		r = w.forNumbers(record.Command{Action: action, Scope: scope, Value: value, Reason: "incident 7"})
	}
	if r.Result != record.ResultDone {
		w.t.Fatalf("%s %s %s: %+v", action, scope, value, r)
	}
	return r.Detail
}

// numberState is the state of number 0 on record.
func (w *world) numberState() (s record.NumberState) {
	w.t.Helper()
	_, err := kafka.ReadAll(w.t.Context(), w.client, w.topo.State(), 0, func(r *kgo.Record) (err error) {
		if string(r.Key) == record.NumberKey {
			s, err = record.ParseNumberState(r.Value)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// holdReasons checks that everything parked of a webhook is parked for the hold.
func (w *world) holdReasons(webhook string, n int) {
	w.t.Helper()
	if got := w.parkReasons(webhook); got[record.ParkHold] != n || len(got) != min(n, 1) {
		w.t.Errorf("%s: parked for %v, want %d for the hold", webhook, got, n)
	}
}

func tenant(name string) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.Tenant = name }
}

// A held webhook gets no request within a second; what is in flight ends, the rest
// is parked, its streak and status stay. Released, everything goes out in order.
func TestHoldWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x")
		a := w.start("a")
		a.owns(0)
		w.receiver.Answer("w", kafkatest.Always(500))
		w.send("w", 0, 3)
		w.until("a streak of three", func() bool { return w.state("w").ConsecutiveFailures == 3 })
		w.receiver.Answer("w", kafkatest.After(1500*time.Millisecond, kafkatest.Always(500)))
		w.until("the first retry is sent", func() bool { return len(w.receiver.Of("w")) == 4 })
		w.send("w", 3, 4)
		w.hold(record.HoldWebhook, "w")
		a.quiesce()
		w.send("w", 7, 3)
		w.send("x", 0, 3)
		time.Sleep(2 * time.Minute)
		a.quiesce()
		if got := len(w.receiver.Of("w")); got != 4 {
			t.Errorf("%d requests, want the four from before", got)
		}
		mustEqual(t, "delivered to another", w.delivered("x"), eventIDs("x", 0, 3))
		w.holdReasons("w", 10)
		if at := w.attempts("w")[3]; at.Outcome != record.Failed || at.Next != record.NextParked {
			t.Errorf("what was in flight went elsewhere: %s", at.Marshal())
		}
		s := w.state("w")
		if s.Status != record.Active || s.ConsecutiveFailures != 4 || s.Parked == nil || s.Parked.Count != 10 {
			t.Errorf("state %s", s.Marshal())
		}
		if h := s.Hold; h == nil || h.By != "test" || h.Reason != "incident 7" || h.At.IsZero() || h.Scope != "" {
			t.Errorf("hold %+v", s.Hold)
		}
		if a.metric("webhooks_paused") != 0 {
			t.Error("it counts as paused")
		}

		if said := w.hold(record.HoldWebhook, "w"); said != "already held by test since "+s.Hold.At.String() {
			t.Errorf("held again: %q", said)
		}
		w.receiver.Answer("w", kafkatest.Always(200))
		if said := w.release(record.HoldWebhook, "w"); said != "released; what is parked goes out first (10)" {
			t.Errorf("release: %q", said)
		}
		w.send("w", 10, 2)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 12 })
		var order []string
		for _, r := range w.receiver.Of("w")[4:] {
			if r.Attempt == 1 {
				order = append(order, r.EventID)
			}
		}
		mustEqual(t, "first attempts after the release", order, eventIDs("w", 3, 9))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		w.oneChain("w")
		if said := w.release(record.HoldWebhook, "w"); said != "webhook w was not held" {
			t.Errorf("released again: %q", said)
		}
	})
}

// A hold of a tenant or a host holds those that are in memory, those that come into
// it, and those that are made later; who leaves it goes on.
func TestHoldTenantAndHost(t *testing.T) {
	for _, scope := range []record.HoldScope{record.HoldTenant, record.HoldHost} {
		t.Run(string(scope), func(t *testing.T) {
			inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
				other := w.cluster.Receiver(t, kafkatest.Always(200))
				host := strings.Split(w.receiver.URL(""), "/")[2]
				of := func(is bool) func(*record.Endpoint) {
					return func(e *record.Endpoint) {
						e.Tenant = map[bool]string{true: "acme", false: "zeta"}[is]
						if scope == record.HoldHost {
							e.URL = map[bool]string{true: w.receiver.URL(e.ID), false: other.URL(e.ID)}[is]
						}
					}
				}
				value := map[record.HoldScope]string{record.HoldTenant: "acme", record.HoldHost: host}[scope]
				for _, id := range []string{"in", "leaves", "quiet"} {
					w.webhook(id, of(true))
				}
				for _, id := range []string{"out", "enters"} {
					w.webhook(id, of(false))
				}
				w.start("a").owns(0, 1)
				w.receiver.Answer("in", kafkatest.After(time.Second, kafkatest.Always(200)))
				w.send("in", 0, 3)
				w.until("one is in flight", func() bool { return len(w.receiver.Of("in")) == 1 })

				if said := w.hold(scope, value); said != string(scope)+" "+value+" is held until it is released" {
					t.Errorf("hold: %q", said)
				}
				w.webhook("new", of(true))
				all := []string{"in", "leaves", "quiet", "out", "enters", "new"}
				for _, id := range all {
					w.send(id, 3, 2)
				}
				w.until("those outside are delivered", func() bool { return len(w.delivered("out")) == 2 && len(w.delivered("enters")) == 2 })
				time.Sleep(time.Minute)
				w.holdReasons("in", 4)
				for _, id := range []string{"leaves", "quiet", "new"} {
					w.holdReasons(id, 2)
					if s := w.state(id); s.Hold != nil || s.Status != record.Active {
						t.Errorf("%s: state %s", id, s.Marshal())
					}
				}

				w.change("leaves", of(false))
				w.change("enters", of(true))
				w.until("who left is delivered", func() bool { return len(w.delivered("leaves")) == 2 })
				w.send("enters", 5, 2)
				time.Sleep(time.Minute)
				w.holdReasons("enters", 2)

				if said := w.hold(scope, value); !strings.HasPrefix(said, "already held by test since 20") {
					t.Errorf("held again: %q", said)
				}
				if n := len(w.numberState().Holds); n != 1 {
					t.Errorf("%d holds on record", n)
				}
				w.release(scope, value)
				w.until("all are delivered", func() bool {
					return len(w.delivered("in")) == 5 && len(w.delivered("quiet")) == 2 && len(w.delivered("new")) == 2 && len(w.delivered("enters")) == 4
				})
				for _, id := range all {
					w.oneChain(id)
					w.until(id+" is healthy", func() bool { s := w.state(id); return s.Healthy() })
				}
				if said := w.release(scope, value); said != string(scope)+" "+value+" was not held" {
					t.Errorf("released again: %q", said)
				}
				if n := len(w.numberState().Holds); n != 0 {
					t.Errorf("%d holds on record", n)
				}
			})
		})
	}
}

// What is in flight when its webhook is held, and is cut, is parked behind what was queued.
func TestCutWhileHeld(t *testing.T) {
	inWorld(t, 1, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("one is in flight", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.hold(record.HoldWebhook, "w")
		a.look(0, func(n *number) { n.cut("for the test") })
		time.Sleep(time.Minute)
		w.holdReasons("w", 3)
		w.release(record.HoldWebhook, "w")
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 3 })
		w.oneChain("w")
	})
}

// A webhook that is held by its tenant is deleted: what is parked of it dies at once.
func TestDeletedWhileHeld(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", tenant("acme"))
		w.start("a").owns(0)
		w.hold(record.HoldTenant, "acme")
		w.hold(record.HoldWebhook, "w")
		w.send("w", 0, 5)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 5 })
		w.delete("w")
		began := time.Now()
		w.until("they are dead", func() bool { return len(w.dead()) == 5 })
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		w.until("nothing is left of it", func() bool { s := w.state("w"); return s.Healthy() })
	})
}

// Holds survive a restart, for webhooks too that nothing was known of.
func TestHoldSurvivesRestart(t *testing.T) {
	for _, c := range []struct {
		scope record.HoldScope
		value string
	}{{record.HoldAll, ""}, {record.HoldTenant, "acme"}, {record.HoldWebhook, "w"}} {
		t.Run(string(c.scope), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", tenant("acme"))
				w.webhook("quiet", tenant("acme"))
				a := w.start("a")
				a.owns(0)
				w.hold(c.scope, c.value)
				w.send("w", 0, 3)
				time.Sleep(2 * time.Second)
				a.quiesce()
				a.kill()
				b := w.start("b")
				b.owns(0)
				w.send("w", 3, 3)
				held := []string{"w"}
				if c.scope != record.HoldWebhook {
					w.send("quiet", 0, 2)
					held = append(held, "quiet")
				}
				time.Sleep(time.Minute)
				b.quiesce()
				for _, id := range held {
					w.counts(id, 0, 0, 0)
				}
				w.release(c.scope, c.value)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 6 })
				mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 6))
				if c.scope != record.HoldWebhook {
					w.until("the other's too", func() bool { return len(w.delivered("quiet")) == 2 })
				}
				a.host.Heal()
			})
		})
	}
}

// Holds and pauses are apart: each is lifted by its own command, and only when
// both are gone it goes on.
func TestHoldAndPause(t *testing.T) {
	lifts := map[string]func(w *world) string{
		"resume":         func(w *world) string { return w.do("w", record.ActionResume).Detail },
		"release":        func(w *world) string { return w.release(record.HoldWebhook, "w") },
		"release tenant": func(w *world) string { return w.release(record.HoldTenant, "acme") },
	}
	for i, order := range [][]string{
		{"resume", "release", "release tenant"}, {"release", "release tenant", "resume"}, {"release tenant", "resume", "release"},
	} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", tenant("acme"))
				a := w.start("a")
				a.owns(0)
				stops := []func(){
					func() { w.do("w", record.ActionPause) },
					func() { w.hold(record.HoldWebhook, "w") },
					func() { w.hold(record.HoldTenant, "acme") },
				}
				for j := range stops {
					stops[(i+j)%len(stops)]()
					w.send("w", j, 1)
				}
				time.Sleep(time.Second)
				for j, lift := range order {
					if n := len(w.receiver.Of("w")); n != 0 {
						t.Fatalf("%d requests before %s", n, lift)
					}
					said := lifts[lift](w)
					if last := j == len(order)-1; strings.Contains(said, "held by test") || strings.Contains(said, "paused") {
						if last {
							t.Errorf("%s: %q, and nothing is left to lift", lift, said)
						}
					} else if !last && lift != "release tenant" { // which speaks of no single webhook
						t.Errorf("%s: %q does not say what still stops it", lift, said)
					}
					time.Sleep(time.Minute)
				}
				mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 3))
				a.quiesce()
				if s := w.state("w"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}

// A webhook that drains an older pause is held and released, several times, by a
// person and by its tenant: everything goes out once, in order.
func TestHoldWhileDraining(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", tenant("acme"))
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 400)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 400 })
		w.receiver.Answer("w", kafkatest.After(7*time.Millisecond, kafkatest.Always(200)))
		w.do("w", record.ActionResume)
		for i := range 6 {
			time.Sleep(400 * time.Millisecond)
			scope, value := record.HoldWebhook, "w"
			if i%2 == 1 {
				scope, value = record.HoldTenant, "acme"
			}
			w.hold(scope, value)
			time.Sleep(50 * time.Millisecond)
			sent := len(w.receiver.Of("w"))
			w.send("w", 400+i*10, 10)
			time.Sleep(time.Duration(i) * time.Second)
			if now := len(w.receiver.Of("w")); now != sent {
				t.Errorf("%d requests while it was held", now-sent)
			}
			w.release(scope, value)
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 460 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 460))
		w.oneChain("w")
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// A hold does not wait behind a command that takes time; what must come in turn does.
func TestHoldOvertakes(t *testing.T) {
	inWorld(t, 1, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		w.start("a").owns(0)
		w.produceCommand(record.Command{ID: "test", Webhook: "w", Action: record.ActionTest})
		w.until("the test is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.produceCommand(record.Command{ID: "pause", Webhook: "w", Action: record.ActionPause})
		began := time.Now()
		w.hold(record.HoldWebhook, "w")
		w.hold(record.HoldAll, "")
		if took := time.Since(began); took > time.Second {
			t.Errorf("the holds took %s", took)
		}
		if s := w.state("w"); s.Status == record.Paused || s.Hold == nil {
			t.Errorf("state %s", s.Marshal())
		}
		w.until("it is paused in its turn", func() bool { return w.pausedBy("w", record.PauseManual) })
		if got := w.results(); !slices.Equal(got[len(got)-2:], []string{"test done", "pause done"}) {
			t.Errorf("results %v", got)
		}
	})
}
