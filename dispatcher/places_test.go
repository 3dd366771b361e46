package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

func inSteps(e *record.Endpoint) {
	e.Schedule = []record.Duration{record.Duration(3 * time.Second), record.Duration(2 * time.Minute)}
}

// inEveryPlace gives webhook w an event in flight (0), two in delay topics (1, due in
// seconds; 2, due in two minutes) and two in its lane (3, 4), and returns when they are there.
func (w *world) inEveryPlace(a *process) {
	w.t.Helper()
	w.webhook("w", inSteps)
	w.receiver.Answer("w", kafkatest.Always(500))
	w.send("w", 2, 1)
	w.until("one waits for minutes", func() bool { return len(w.receiver.Of("w")) == 2 })
	w.send("w", 1, 1)
	w.until("one waits for seconds", func() bool { return len(w.receiver.Of("w")) == 3 })
	w.receiver.Answer("w", kafkatest.After(5*time.Second, kafkatest.Always(500)))
	w.send("w", 0, 1)
	w.send("w", 3, 2)
	w.until("they are where they should be", func() bool {
		there := false
		a.look(0, func(n *number) {
			x := n.webhooks["w"]
			there = x != nil && len(x.flight) == 1 && x.queue.len() == 2 && n.due.Len() == 2
		})
		return there
	})
}

// A webhook is deleted: what waits of it dies at once, in every place, not only when
// it would have been due.
func TestDeletedWithEventsInEveryPlace(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		w.inEveryPlace(a)
		w.delete("w")
		began := time.Now()
		w.until("all but the one in flight are dead", func() bool { return len(w.dead()) == 4 })
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if n := len(w.receiver.Of("w")); n != 4 {
			t.Errorf("%d requests, want four", n)
		}
		w.until("the one in flight is dead", func() bool { return len(w.dead()) == 5 })
		for _, l := range w.dead() {
			if l.Reason != record.WebhookDeleted {
				t.Errorf("%s died as %s", l.ID, l.Reason)
			}
		}
		a.quiesce()
		a.look(0, func(n *number) {
			if n.due.Len() != 0 || n.flow.retries != (amount{}) || len(n.webhooks) != 0 {
				t.Errorf("still there: %d due, %+v, %d webhooks", n.due.Len(), n.flow.retries, len(n.webhooks))
			}
		})
		time.Sleep(10 * time.Minute)
		if n := len(w.dead()); n != 5 || len(w.receiver.Of("w")) != 4 {
			t.Errorf("%d dead, %d requests later", n, len(w.receiver.Of("w")))
		}
	})
}

// Deleted while nobody owned it: its retries die as they are read.
func TestRetryOfAWebhookDeletedMeanwhile(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("the next attempt is due in 16 s", func() bool { return len(w.retries("w")) == 4 })
		a.stop()
		<-a.ended
		w.delete("w")
		w.start("b").owns(0)
		began := time.Now()
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		if took := time.Since(began); took > time.Second || w.dead()[0].Reason != record.WebhookDeleted {
			t.Errorf("it died as %s after %s", w.dead()[0].Reason, took)
		}
	})
}

// A webhook is switched off, or its configuration can't be decrypted any more, and
// comes back: what waits in every place is parked, nothing starts meanwhile, then
// everything goes out.
func TestUnusableWithEventsInEveryPlace(t *testing.T) {
	off := false
	for name, c := range map[string]struct {
		spoil  func(w *world)
		why    record.PauseReason
		parked record.ParkReason
	}{
		"disabled": {func(w *world) { w.change("w", func(e *record.Endpoint) { e.Enabled = &off }) }, record.PauseDisabled, record.ParkPaused},
		"not decryptable": {func(w *world) {
			e := w.endpoint("w") // in clear
			inSteps(&e)
			w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Key: []byte("w"), Value: e.Marshal()})
		}, record.PauseConfig, record.ParkConfig},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				a := w.start("a")
				a.owns(0)
				w.inEveryPlace(a)
				c.spoil(w)
				w.until("it is paused", func() bool { return w.pausedBy("w", c.why) })
				time.Sleep(time.Minute)
				if n := len(w.receiver.Of("w")); n != 4 {
					t.Errorf("%d requests, want the four from before", n)
				}
				// The one that waits for minutes still does; the one that was in flight is parked.
				if got := w.parkReasons("w"); got[c.parked] != 4 || len(got) != 1 {
					t.Errorf("parked for %v", got)
				}
				w.receiver.Answer("w", kafkatest.Always(200))
				e := w.endpoint("w")
				inSteps(&e)
				w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Key: []byte("w"), Value: w.sealed(e)})
				w.until("four are delivered", func() bool { return len(w.delivered("w")) == 4 })
				mustEqual(t, "in the order in which they were parked", w.delivered("w"), []string{"w-3", "w-4", "w-1", "w-0"})
				time.Sleep(time.Hour)
				w.counts("w", 9, 9, len(w.retries("w")))
				if n := len(w.delivered("w")); n != 5 {
					t.Errorf("%d delivered", n)
				}
				a.quiesce()
				if s := w.state("w"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}
