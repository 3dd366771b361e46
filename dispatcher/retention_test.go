package dispatcher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// keepParked sets how long the parked topic keeps a record.
func (w *world) keepParked(d time.Duration) {
	w.t.Helper()
	ms := strconv.FormatInt(d.Milliseconds(), 10)
	responses, err := kadm.NewClient(w.client).AlterTopicConfigs(w.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &ms}}, w.topo.Parked())
	if err == nil {
		_, err = responses.On(w.topo.Parked(), func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// expires has the numbers look at once for what was parked more than life ago.
func (p *process) expires(life time.Duration) {
	p.w.t.Helper()
	p.d.ownership.each(func(n *number) {
		n.inbox.post(func() {
			if n.started.Load() && n.parked.sweep == nil {
				n.sweepParked(time.Now(), life)
			}
		})
	})
}

// expired are the ids of those that died of age, in order.
func (w *world) expired() (all []string) {
	w.t.Helper()
	for _, l := range w.dead() {
		if l.Reason != record.ParkedExpired {
			w.t.Errorf("%s died as %s", l.ID, l.Reason)
		}
		all = append(all, l.ID)
	}
	return all
}

// bigEvent is one of which a few fill a fetch: to let many die takes many transactions.
func (w *world) bigEvent(webhook string, i int) *kgo.Record {
	r := w.event(webhook, i)
	r.Value = fmt.Appendf(nil, `{"n":%d,"fill":%q}`, i, strings.Repeat("x", 300_000))
	return r
}

// of are those of a webhook.
func of(webhook string, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !strings.HasPrefix(id, webhook+"-") })
}

// One day before retention takes a parked event it dies, in order, whyever it is parked; those that are younger stay, and go out
// in order. Processes come and go meanwhile, and all of them know when.
func TestParkedExpires(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.keepParked(48 * time.Hour)
		for _, id := range []string{"w", "held", "off", "fine"} {
			w.webhook(id)
		}
		began := time.Now()
		for i := range 3 { // at 0 h, 12 h, 23 h 30 min
			a := w.start(fmt.Sprint("a", i))
			a.owns(0)
			w.do("w", record.ActionPause)
			w.hold(record.HoldWebhook, "held")
			no := false
			w.change("off", func(e *record.Endpoint) { e.Enabled = &no })
			w.until("it is off", func() bool { return w.pausedBy("off", record.PauseDisabled) })
			for _, id := range []string{"w", "held", "off", "fine"} {
				w.send(id, 5*i, 5)
			}
			w.until("they are parked", func() bool { return len(w.parked("w"))+len(w.parked("held"))+len(w.parked("off")) == 15*(i+1) })
			w.until("they are delivered", func() bool { return len(w.delivered("fine")) == 5*(i+1) })
			if n := len(w.dead()); n > 0 {
				t.Errorf("%d have died after %s", n, time.Since(began))
			}
			a.stop()
			<-a.ended
			time.Sleep(time.Until(began.Add([]time.Duration{12 * time.Hour, 23*time.Hour + 30*time.Minute, 24*time.Hour - time.Minute}[i])))
		}
		a := w.start("b")
		a.owns(0)
		time.Sleep(lookEvery)
		w.until("the first have died", func() bool { return len(w.dead()) == 15 })
		if took := time.Since(began); took < 24*time.Hour || took > 24*time.Hour+2*lookEvery {
			t.Errorf("they have died after %s", took)
		}
		time.Sleep(2 * lookEvery)
		for _, id := range []string{"w", "held", "off"} {
			mustEqual(t, "expired", of(id, w.expired()), eventIDs(id, 0, 5))
			if s := w.state(id); s.Parked == nil || s.Parked.Count != 10 || len(s.Parked.Done) > 0 || s.Parked.OldestAt.Sub(began) < 12*time.Hour || s.Parked.OldestAt.Sub(began) > 13*time.Hour {
				t.Errorf("state %s", s.Marshal())
			}
		}
		if got := a.metric("dlq_records_total", string(record.ParkedExpired)); got != 15 {
			t.Errorf("%v are counted", got)
		}
		told := 0
		for _, r := range w.attempts("w") {
			if r.Outcome == record.Dead && r.Attempt == 0 && r.Next == record.NextNone && strings.HasPrefix(r.Error, "parked_expired: parked since ") {
				told++
			}
		}
		if told != 5 {
			t.Errorf("%d deaths are on record: %+v", told, w.attempts("w"))
		}
		if m := w.dead()[0].Message; !strings.HasSuffix(m, "longer than 24h") {
			t.Errorf("message %q", m)
		}
		w.do("w", record.ActionResume)
		w.release(record.HoldWebhook, "held")
		w.until("the rest is delivered", func() bool { return len(w.delivered("w"))+len(w.delivered("held")) == 20 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 5, 10))
		mustEqual(t, "sent", ids(w.receiver.Of("held")), eventIDs("held", 5, 10))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// What operators set acts soon, also below what a start would accept.
func TestParkedExpiresAsItIsSet(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 3)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 3 })
		w.keepParked(-time.Millisecond)
		time.Sleep(2 * lookEvery)
		if life := a.d.parkedLife.Load(); life < int64(100*365*24*time.Hour) {
			t.Errorf("without a limit it is %s", time.Duration(life))
		}
		w.keepParked(2 * time.Hour)
		began := time.Now()
		w.until("they are dead", func() bool { return time.Since(began) > time.Minute || len(w.dead()) > 0 })
		if n := len(w.dead()); n > 0 {
			t.Fatalf("%d have died at once", n)
		}
		time.Sleep(time.Hour)
		mustEqual(t, "expired", w.expired(), eventIDs("w", 0, 3))
	})
}

// The owner dies, or is stopped, in the middle of a sweep, several times: nothing dies twice, nothing is lost.
func TestParkedExpiresThroughCrashes(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.keepParked(48 * time.Hour)
		w.webhook("w")
		w.webhook("x")
		p := w.start("a")
		p.owns(0)
		w.do("w", record.ActionPause)
		w.do("x", record.ActionPause)
		const old, young = 40, 10
		park := func(first, n int) {
			for i := first; i < first+n; i++ {
				w.produce(w.bigEvent("w", i), w.event("x", i))
			}
			w.until("they are parked", func() bool { return len(w.parked("w"))+len(w.parked("x")) == 2*(first+n) })
		}
		park(0, old)
		p.stop()
		<-p.ended
		time.Sleep(23 * time.Hour)
		p = w.start("b")
		p.owns(0)
		park(old, young)
		p.stop()
		<-p.ended
		time.Sleep(time.Hour)
		var dead []*process
		for i := range 4 {
			p = w.start(fmt.Sprint("c", i))
			more := len(w.expired()) + 5
			w.until("some have died", func() bool { return len(w.expired()) >= more })
			if i%2 == 0 {
				p.kill()
				dead = append(dead, p)
			} else {
				p.stop()
				<-p.ended
			}
		}
		if n := len(w.expired()); n == 2*old {
			t.Fatal("all have died before the last owner: this test shows nothing")
		}
		p = w.start("d")
		p.owns(0)
		w.do("w", record.ActionResume) // at the same time
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == young })
		w.do("x", record.ActionResume)
		time.Sleep(time.Minute)
		for _, id := range []string{"w", "x"} {
			mustEqual(t, "expired", of(id, w.expired()), eventIDs(id, 0, old))
			mustEqual(t, "sent", ids(w.receiver.Of(id)), eventIDs(id, old, young))
			w.oneChain(id)
		}
		p.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		for _, d := range dead {
			d.host.Heal()
		}
	})
}

// A webhook that is draining, but not soon enough: what was read back dies too, what is in flight ends, the young go out.
func TestParkedExpiresWhileDraining(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		limit := w.drainsSlowly()
		a.expires(time.Since(limit))
		w.until("the old are dead", func() bool { return len(w.dead()) == 159 })
		if n := len(w.receiver.Of("w")); n != 41 {
			t.Errorf("%d requests, want that none has started meanwhile", n)
		}
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == 91 })
		time.Sleep(time.Minute)
		mustEqual(t, "expired", w.expired(), eventIDs("w", 41, 159))
		mustEqual(t, "delivered", w.delivered("w"), append(eventIDs("w", 0, 41), eventIDs("w", 200, 50)...))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// What is in flight comes back when the sweep has gone by, or is going by:
//
//  1. event 40 is in flight; those behind it die;
//  2. the webhook is held, and the request cut;
//  3. event 40 lies in parked again, before the webhook's place there.
//
// The sweep does not pass over it, and the next one finds it.
func TestParkedExpiresOfWhatComesBack(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprint(meanwhile), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.start("a")
				a.owns(0)
				limit := w.drainsSlowly()
				life := time.Since(limit)
				if meanwhile { // a sweep that reads, and whose fetch comes afterwards
					a.look(0, func(n *number) {
						w := n.webhooks["w"]
						n.parked.sweep = &sweep{before: limit, at: w.parked.cursor, of: map[*webhook]int{w: 0}}
					})
				} else {
					a.expires(life)
					w.until("those behind it are dead", func() bool { return len(w.dead()) == 159 })
				}
				a.quiesce()
				w.hold(record.HoldWebhook, "w")
				a.look(0, func(n *number) { n.cut("for the test") })
				w.until("it has come back", func() bool {
					back := false
					a.look(0, func(n *number) { back = len(n.webhooks["w"].flight) == 0 })
					return back
				})
				if meanwhile {
					a.look(0, func(n *number) {
						n.parked.sweep.reaches(n.parked.end)
						n.parked.sweep = nil
					})
				}
				a.expires(life + time.Second)
				w.until("it is dead", func() bool { return len(w.dead()) == 160 })
				w.release(record.HoldWebhook, "w")
				w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == 90 })
				got := w.expired()
				slices.Sort(got)
				want := eventIDs("w", 40, 160)
				slices.Sort(want)
				mustEqual(t, "expired", got, want)
				mustEqual(t, "delivered", w.delivered("w"), append(eventIDs("w", 0, 40), eventIDs("w", 200, 50)...))
				a.quiesce()
				if s := w.state("w"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}

// A strict webhook's head dies of age like all others, and keeps nothing back then.
func TestParkedExpiresWithItsHead(t *testing.T) {
	for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey} {
		t.Run(string(o), func(t *testing.T) {
			inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
				w.webhook("w", inOrder(o))
				a := w.start("a")
				a.owns(0)
				w.receiver.Answer("w", kafkatest.After(3*time.Second, kafkatest.FailFirst(1)))
				w.send("w", 0, 5)
				w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
				w.do("w", record.ActionPause)
				w.until("its head is parked behind the others", func() bool { return len(w.parked("w")) == 5 })
				time.Sleep(time.Minute)
				w.send("w", 5, 2)
				w.until("more are parked", func() bool { return len(w.parked("w")) == 7 })
				a.expires(30 * time.Second)
				w.until("they are dead", func() bool { return len(w.dead()) == 5 })
				mustEqual(t, "expired", w.expired(), []string{"w-1", "w-2", "w-3", "w-4", "w-0"})
				if s := w.state("w"); s.HeadCount() != 0 || s.Parked.Count != 2 {
					t.Errorf("state %s", s.Marshal())
				}
				w.receiver.Answer("w", kafkatest.Always(200))
				w.do("w", record.ActionResume)
				w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == 2 })
				mustEqual(t, "delivered", w.delivered("w"), eventIDs("w", 5, 2))
				w.oneChain("w")
				a.quiesce()
				if s := w.state("w"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}

// A person discards what is dying of age, skips some of it, or deletes the webhook: each event ends once.
func TestParkedExpiresWithCommands(t *testing.T) {
	for _, what := range []string{"discard", "delete", "skip"} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				const n, atOnce = 20, 4 // when the first four are committed, the next four are decided
				w.webhook("w")
				a := w.start("a", func(o *Options) { o.Config.Cycle = 3 * time.Second })
				a.owns(0)
				w.do("w", record.ActionPause)
				for i := range n {
					w.produce(w.bigEvent("w", i))
				}
				w.until("they are parked", func() bool { s := w.state("w"); return s.Parked != nil && s.Parked.Count == n })
				time.Sleep(time.Minute)
				w.send("w", n, 5)
				w.until("more are parked", func() bool { s := w.state("w"); return s.Parked.Count == n+5 })
				a.quiesce()
				a.expires(30 * time.Second)
				w.until("some have died", func() bool { return len(w.dead()) > 0 })
				if died := len(w.dead()); died > atOnce {
					t.Errorf("%d died in the first transaction", died)
				}
				switch what {
				case "discard":
					w.discard("w", time.Now().Add(-30*time.Second))
				case "delete":
					w.delete("w")
				case "skip":
					s := w.state("w")
					w.skip(w.topo.Parked(), s.Parked.Last-6) // an old one, and a marker may lie between
				}
				a.expires(30 * time.Second)
				time.Sleep(time.Minute)
				ends := map[string]int{}
				reasons := map[record.DeathReason]int{}
				for _, l := range w.dead() {
					ends[l.ID]++
					reasons[l.Reason]++
				}
				if what != "delete" {
					w.do("w", record.ActionResume)
					w.until("the young are delivered", func() bool { return len(w.delivered("w")) == 5 })
				}
				for _, id := range w.delivered("w") {
					ends[id]++
				}
				for _, id := range eventIDs("w", 0, n+5) {
					if ends[id] != 1 {
						t.Errorf("%s has ended %d times", id, ends[id])
					}
				}
				if reasons[record.ParkedExpired] == 0 || what == "discard" && reasons[record.Discarded] == 0 {
					t.Errorf("reasons %v", reasons)
				}
				a.quiesce()
				if s := w.state("w"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}

// One that would be too late anyway says so.
func TestParkedExpiresAfterItsExpiry(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.sendUntil("w", 0, record.At(time.Now().Add(20*time.Second)).String())
		w.send("w", 1, 1)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 2 })
		time.Sleep(time.Minute)
		a.expires(30 * time.Second)
		w.until("they are dead", func() bool { return len(w.dead()) == 2 })
		if l := w.dead(); l[0].Reason != record.Expired || l[1].Reason != record.ParkedExpired {
			t.Errorf("died as %s and %s", l[0].Reason, l[1].Reason)
		}
	})
}

// What retention took while nobody was there is not counted for ever.
func TestParkedTakenByRetention(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.keepParked(48 * time.Hour)
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 3)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 3 })
		a.stop()
		<-a.ended
		time.Sleep(72 * time.Hour)
		w.cluster.Fake.ApplyRetention()
		w.start("b").owns(0)
		w.until("it is known", func() bool { s := w.state("w"); return s.Parked == nil })
		if s := w.state("w"); s.Status != record.Paused || len(w.dead()) > 0 {
			t.Errorf("state %s, %d dead", s.Marshal(), len(w.dead()))
		}
	})
}

// ... a head among them: what it kept back does not wait for it for ever.
func TestParkedHeadTakenByRetention(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.keepParked(48 * time.Hour)
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", eventFails(eventID("w", 0), always, 0))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("the first has failed", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.until("the head is parked", func() bool { s := w.state("w"); return s.Head != nil && s.Head.Parked })
		a.stop()
		<-a.ended
		time.Sleep(72 * time.Hour)
		w.cluster.Fake.ApplyRetention()
		w.start("b").owns(0)
		w.until("it is known", func() bool { return w.state("w").Parked == nil })
		w.do("w", record.ActionResume)
		w.send("w", 3, 2)
		w.until("what comes is delivered", func() bool { return len(w.delivered("w")) == 2 })
		w.until("it is healthy", func() bool { s := w.state("w"); return s.Healthy() })
	})
}

// What lies in front of a list that is full can be dealt with: that is what shortens it. What lies behind a request in
// flight would have to be listed, and waits for its end.
func TestParkedDiesAtAFullList(t *testing.T) {
	d := testDispatcher(t)
	for name, c := range map[string]struct {
		dies   func(n *number, w *webhook, b kafka.Batch)
		flight bool
	}{
		"sweep":                    {sweeps, false},
		"sweep behind a request":   {sweeps, true},
		"discard":                  {discards, false},
		"discard behind a request": {discards, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNumber(d, 0, 1, "member", nil)
			n.cancel(errReleased)
			n.out.trackers = map[string]*tracker.Tracker{}
			w := n.webhook("w")
			w.state.AddPause(record.PauseManual)
			w.state.Parked = &record.Parked{Last: maxDone + 1, Count: 2}
			b := kafka.Batch{Next: maxDone + 2}
			for at := range int64(maxDone + 2) {
				if at > 0 && at <= maxDone {
					w.state.Parked.Done = append(w.state.Parked.Done, at)
				}
				event := &record.Delivery{Event: record.Event{Webhook: "w", ID: fmt.Sprint(at)}, Key: []byte("w"), ProducedAt: record.At(time.Now().Add(-time.Hour))}
				r := event.ParkedRecord(d.topo.Parked(), 0, record.ParkPaused)
				r.Offset, r.Timestamp = at, event.ProducedAt.Time
				b.Records = append(b.Records, r)
			}
			if c.flight {
				w.parked.loaded, w.parked.cursor = []int64{0}, 1
			}
			n.parked.end = b.Next
			c.dies(n, w, b)
			if died := w.state.Parked == nil; died == c.flight || !died && len(w.state.Parked.Done) != maxDone {
				t.Errorf("parked are %d", w.parkedCount())
			}
		})
	}
}

func sweeps(n *number, w *webhook, b kafka.Batch) {
	n.parked.sweep = &sweep{before: time.Now(), life: time.Hour, of: map[*webhook]int{w: 0}}
	n.sweepBatch(n.parked.sweep, b)
}

func discards(n *number, w *webhook, b kafka.Batch) {
	w.discard = &discard{order: order{Command: record.Command{Before: record.At(time.Now())}}, end: b.Next}
	_ = n.discardBatch(time.Now(), w, b)
}
