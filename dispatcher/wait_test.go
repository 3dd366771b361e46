package dispatcher

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// asksToWait answers the first request of an event with 429 and a Retry-After, the rest with 200.
func asksToWait(event string, wait time.Duration) kafkatest.Script {
	return func(q *kafkatest.Request) kafkatest.Response {
		if q.EventID == event && q.Attempt == 1 {
			return kafkatest.Response{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {strconv.Itoa(int(wait.Seconds()))}}}
		}
		return kafkatest.Response{Status: 200}
	}
}

// A short wait is waited for in memory: nothing goes out before it ends, nothing is parked.
func TestShortRetryAfter(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 20*time.Second))
		w.send("w", 0, 5)
		w.start("a")
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
		all := w.receiver.Of("w")
		if waited := all[1].Start.Sub(all[0].End); waited < 20*time.Second || waited > 21*time.Second {
			t.Errorf("the second request came after %s", waited)
		}
		if n := len(w.parked("w")); n != 0 {
			t.Errorf("%d were parked", n)
		}
		w.counts("w", 6, 6, 1)
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("the state is left: %s", s.Marshal())
		}
	})
}

// An hour of waiting, through a restart, with events coming in: it is no attempt, costs no hop, and ends by itself.
func TestLongRetryAfter(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 5*time.Hour)) // an hour is the most
		w.send("w", 0, 5)
		a := w.start("a")
		w.until("it asks to wait", func() bool { return len(w.receiver.Of("w")) == 1 })
		asked := w.receiver.Of("w")[0].End
		w.until("the others are parked", func() bool { return len(w.parked("w")) == 5 })
		for _, d := range w.parked("w") {
			if d.Parked != record.ParkHold {
				t.Errorf("%s is parked as %s", d.ID, d.Parked)
			}
		}
		time.Sleep(20 * time.Minute)
		w.send("w", 5, 5)
		time.Sleep(time.Second)
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		b := w.start("b")
		b.owns(0)
		time.Sleep(10 * time.Minute)
		w.send("w", 10, 1)
		time.Sleep(time.Until(asked.Add(time.Hour - time.Second)))
		if n := len(w.receiver.Of("w")); n != 1 {
			t.Fatalf("%d requests within the hour", n)
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 11 })
		all := w.receiver.Of("w")
		if waited := all[1].Start.Sub(asked); waited < time.Hour || waited > time.Hour+2*time.Second || all[1].EventID != eventID("w", 0) || all[1].Attempt != 2 {
			t.Errorf("after %s came attempt %d of %s", waited, all[1].Attempt, all[1].EventID)
		}
		mustEqual(t, "sent", ids(all[1:]), eventIDs("w", 0, 11))
		b.quiesce()
		if n := len(w.retries("w")); n != 0 {
			t.Errorf("%d records went through delay topics", n)
		}
		w.oneChain("w")
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("the state is left: %s", s.Marshal())
		}
	})
}

// A rate limit spaces requests evenly; what has waited does not come in a lump.
func TestRateLimit(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.RateLimit = 4 })
		w.webhook("free")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		time.Sleep(time.Minute) // earns nothing
		w.send("w", 1, 40)
		w.send("free", 0, 100)
		w.until("the other one is not kept", func() bool { return len(w.delivered("free")) == 100 })
		if n := len(w.receiver.Of("w")); n > 10 {
			t.Errorf("%d of the limited one have gone out already", n)
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 41 })
		all := w.receiver.Of("w")
		for i := 2; i < len(all); i++ {
			if gap := all[i].Start.Sub(all[i-1].Start); gap < 250*time.Millisecond || gap > 300*time.Millisecond {
				t.Errorf("request %d came %s after the one before", i, gap)
			}
		}
	})
}

// auto_resume ends a pause by failures, also one that a restart has found; it ends no other.
func TestAutoResume(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		for _, id := range []string{"w", "by-hand"} {
			w.webhook(id, func(e *record.Endpoint) { e.AutoResume = record.Duration(time.Hour) })
		}
		a := w.start("a")
		a.owns(0)
		w.do("by-hand", record.ActionPause)
		w.send("w", 0, 3)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		paused := w.state("w").PausedAt
		a.quiesce()
		w.receiver.Answer("w", kafkatest.Always(200))
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		w.start("b").owns(0)
		time.Sleep(time.Until(paused.Add(time.Hour - time.Second)))
		if !w.pausedBy("w", record.PauseFailures) {
			t.Error("it was resumed too early")
		}
		time.Sleep(5 * time.Second)
		if w.pausedBy("w", record.PauseFailures) {
			t.Error("it is still paused")
		}
		w.until("all have ended", func() bool { return len(w.delivered("w"))+len(w.dead()) == 3 })
		if !w.pausedBy("by-hand", record.PauseManual) {
			t.Error("a pause by hand has ended by itself")
		}
	})
}
