package dispatcher

import (
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// onEach makes one webhook in each of the first n numbers; names[p] lives in p.
func (w *world) onEach(n int32, change ...func(*record.Endpoint)) []string {
	w.t.Helper()
	names := make([]string, n)
	for i := 0; ; i++ {
		id := "w" + string(rune('a'+i))
		if p := w.topo.PartitionFor(id); p < n && names[p] == "" {
			names[p] = id
			w.webhook(id, change...)
			n := 0
			for _, name := range names {
				if name != "" {
					n++
				}
			}
			if n == len(names) {
				return names
			}
		}
	}
}

// moved is the number that went from a to b.
func moved(w *world, a, b *process) (number int32) {
	w.t.Helper()
	w.until("a number has moved", func() bool {
		for p := range w.topo.Partitions() {
			if b.has(p) && !a.has(p) {
				number = p
				return true
			}
		}
		return false
	})
	return number
}

// A number that is given up is drained: what is in flight ends, its outcome is
// committed by the old owner, and nothing is sent again.
func TestRevokeDrains(t *testing.T) {
	inWorld(t, 2, kafkatest.After(7*time.Second, kafkatest.FailFirst(1)), func(t *testing.T, w *world) {
		webhooks := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		a.quiesce()
		for _, id := range webhooks {
			w.send(id, 0, 3)
		}
		w.until("both are sent to", func() bool { return len(w.receiver.Requests()) == 2 })
		b := w.start("b")
		number := moved(w, a, b)
		id := webhooks[number]
		if got := w.attempts(id); len(got) != 1 || got[0].Dispatcher != "a" {
			t.Errorf("when b has started, on record are %+v, want the attempt of a", got)
		}
		if got := len(w.receiver.Of(id)); got > 2 {
			t.Errorf("%d requests, while the first ran for 7s: some have started in the drain", got)
		}
		w.until("all are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 6 })
		time.Sleep(time.Minute)
		for _, id := range webhooks {
			w.oneChain(id)
			w.counts(id, 6, 6, 3)
		}
	})
}

// What runs longer than the drain timeout is cut; the new owner makes the same attempt again.
func TestDrainTimeoutCuts(t *testing.T) {
	inWorld(t, 2, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		webhooks := w.onEach(2)
		short := func(o *Options) { o.Config.DrainTimeout = 3 * time.Second }
		a := w.start("a", short)
		a.owns(0, 1)
		a.quiesce()
		for _, id := range webhooks {
			w.send(id, 0, 1)
		}
		w.until("both are sent to", func() bool { return len(w.receiver.Requests()) == 2 })
		b := w.start("b", short)
		id := webhooks[moved(w, a, b)]
		w.until("it is sent again", func() bool { return len(w.receiver.Of(id)) == 2 })
		first, second := w.receiver.Of(id)[0], w.receiver.Of(id)[1]
		if first.End.IsZero() || first.Status != 0 || second.Start.Before(first.End) {
			t.Errorf("the first ended at %s with status %d, the second began at %s: two at once", first.End, first.Status, second.Start)
		}
		if second.Attempt != 1 {
			t.Errorf("the new owner sent attempt %d, want 1 again", second.Attempt)
		}
		w.until("both are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 2 })
		for _, id := range webhooks {
			w.oneChain(id)
		}
	})
}

// A stop drains, commits, and leaves the group: another takes over at once, and
// nothing is sent again. Its requests take all of 30 s, and outlast the session timeout: drained inside
// the client's Close, when it heartbeats no more, they would be.
func TestStop(t *testing.T) {
	inWorld(t, 2, kafkatest.After(30*time.Second, kafkatest.FailFirst(1)), func(t *testing.T, w *world) {
		webhooks := w.onEach(2, func(e *record.Endpoint) { e.Timeout = record.Duration(40 * time.Second) })
		a := w.start("a")
		a.owns(0, 1)
		b := w.start("b")
		moved(w, a, b)
		for _, id := range webhooks {
			w.send(id, 0, 3)
		}
		w.until("both are sent to", func() bool { return len(w.receiver.Requests()) == 2 })
		a.stop()
		if err := a.wait(); err != nil {
			t.Error(err)
		}
		stopped := time.Now()
		b.owns(0, 1)
		if took := time.Since(stopped); took > 3*time.Second {
			t.Errorf("b has started them %s after the stop: the group was not left", took)
		}
		w.until("all are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 6 })
		time.Sleep(time.Minute)
		for _, id := range webhooks {
			w.oneChain(id)
			w.counts(id, 6, 6, 3)
		}
	})
}

// Without leaving, the numbers are kept for a restart, which has them at once.
func TestStopWithoutLeaving(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		stay := func(o *Options) { o.Config.LeaveOnStop = false }
		a, b := w.start("a", stay), w.start("b", stay)
		moved(w, b, a)
		moved(w, a, b)
		had := int32(0)
		if a.has(1) {
			had = 1
		}
		a.stop()
		if err := a.wait(); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		if b.has(had) {
			t.Fatal("the numbers went to another at once")
		}
		again := time.Now()
		w.start("a", stay).owns(had)
		if took := time.Since(again); took > 3*time.Second {
			t.Errorf("a has its number back after %s", took)
		}
	})
}

// Nothing starts in a drain, also while other requests of the number are still in flight.
func TestNothingStartsInADrain(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("long")
		w.receiver.Answer("long", kafkatest.After(20*time.Second, kafkatest.Always(200)))
		w.webhook("short")
		w.receiver.Answer("short", kafkatest.After(time.Second, kafkatest.FailFirst(1)))
		a := w.start("a")
		a.owns(0)
		w.send("long", 0, 2)
		w.send("short", 0, 30)
		w.until("both are sent to", func() bool { return len(w.receiver.Requests()) >= 2 })
		time.Sleep(3 * time.Second)
		stopped := time.Now()
		a.stop()
		w.send("short", 30, 1)
		if err := a.wait(); err != nil {
			t.Error(err)
		}
		if took := time.Since(stopped); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("the stop took %s, want as long as the request in flight", took)
		}
		for _, r := range w.receiver.Requests() {
			if r.Start.After(stopped) {
				t.Errorf("%s was sent %s after the stop", r.EventID, r.Start.Sub(stopped))
			}
			if r.Status == 0 {
				t.Errorf("the request of %s was cut", r.EventID)
			}
		}
	})
}
