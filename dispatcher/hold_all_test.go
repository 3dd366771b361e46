package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// While everything is held nothing starts and nothing is taken in or parked, but
// commands are done, configurations read, and the dispatcher is ready. Released, what was
// due is not late.
func TestHoldAll(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		w.webhook("x")
		a := w.start("a")
		a.owns(0)
		w.receiver.Answer("w", kafkatest.After(time.Second, kafkatest.FailFirst(2)))
		w.send("w", 0, 5)
		w.until("one failed, one is in flight", func() bool { return len(w.receiver.Of("w")) == 2 })
		if said := w.hold(record.HoldAll, ""); said != "all is held until it is released" {
			t.Errorf("hold: %q", said)
		}
		w.send("w", 5, 3000)
		w.webhook("late")
		for _, id := range []string{"x", "late"} {
			w.send(id, 0, 5)
		}
		time.Sleep(2 * time.Minute)
		a.quiesce()
		if got := len(w.receiver.Of("w")) + len(w.receiver.Of("x")) + len(w.receiver.Of("late")); got != 2 {
			t.Errorf("%d requests, want the two from before", got)
		}
		if n := len(w.committed(w.topo.Parked())); n != 0 {
			t.Errorf("%d events are parked", n)
		}
		if why := a.d.Ready(); len(why) != 0 {
			t.Errorf("not ready: %v", why)
		}
		if backlog := a.metric("backlog"); backlog != 0 {
			t.Errorf("a backlog of %v asks for more dispatchers", backlog)
		}
		if r := w.do("x", record.ActionPause); r.Result != record.ResultDone {
			t.Errorf("pause: %+v", r)
		}
		if r := w.do("x", record.ActionResume); !strings.HasPrefix(r.Detail, "active; everything is held by test since 20") {
			t.Errorf("resume: %+v", r)
		}
		w.receiver.Answer("w", kafkatest.Always(200))
		w.release(record.HoldAll, "")
		w.until("all are delivered", func() bool {
			return len(w.delivered("w")) == 3005 && len(w.delivered("x")) == 5 && len(w.delivered("late")) == 5
		})
		var first []string
		for _, r := range w.receiver.Of("w") {
			if r.Nth == 1 {
				first = append(first, r.EventID)
			}
		}
		mustEqual(t, "first attempts", first, eventIDs("w", 0, 3005))
		retried := 0
		for _, at := range w.attempts("w") {
			if at.Attempt > 1 {
				retried++
			}
			if at.LatenessMS > 50 {
				t.Errorf("attempt %d of %s is late by %d ms, counted from before the release", at.Attempt, at.EventID, at.LatenessMS)
			}
		}
		if retried != 2 {
			t.Errorf("%d retries", retried)
		}
		w.oneChain("w")
	})
}

// Lanes that are full when everything is held stay in memory: that they stand still is
// nobody's slowness.
func TestHoldAllWithFullLanes(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		webhooks := []string{"a", "b", "c", "d", "e", "f"}
		for _, id := range webhooks {
			w.webhook(id)
			w.receiver.Answer(id, kafkatest.After(20*time.Second, kafkatest.Always(200)))
		}
		a := w.start("a")
		a.owns(0)
		for _, id := range webhooks {
			w.send(id, 0, 700)
		}
		w.until("lanes are full", func() bool {
			full := false
			a.look(0, func(n *number) { full = n.streams[w.topo.Events()].stopped == "the lanes are full" })
			return full
		})
		w.hold(record.HoldAll, "")
		time.Sleep(2 * time.Minute)
		if n := len(w.committed(w.topo.Parked())); n != 0 {
			t.Errorf("%d events are parked", n)
		}
		for _, id := range webhooks {
			w.receiver.Answer(id, kafkatest.Always(200))
		}
		w.release(record.HoldAll, "")
		for _, id := range webhooks {
			w.until(id+" is delivered", func() bool { return len(w.delivered(id)) == 700 })
		}
	})
}
