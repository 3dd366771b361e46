package dispatcher

import (
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A rate limit holds for events that come one by one.
func TestRateTrickle(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.RateLimit = 1 })
		a := w.start("a")
		a.owns(0)
		for i := range 20 {
			w.send("w", i, 1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(w.receiver.Of("w")); n > 4 {
			t.Errorf("%d requests within 2 s at a rate of 1/s", n)
		}
	})
}

// A rate limit spaces the requests of a webhook that may have several in flight, through a restart.
func TestRateOfSeveral(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8), func(e *record.Endpoint) { e.RateLimit = 4 })
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 30)
		time.Sleep(2 * time.Second)
		a.stop()
		<-a.ended
		b := w.start("b")
		b.owns(0)
		w.until("all", func() bool { return len(w.delivered("w")) == 30 })
		all := w.receiver.Of("w")
		for i := 1; i < len(all); i++ {
			if gap := all[i].Start.Sub(all[i-1].Start); gap < 240*time.Millisecond {
				t.Errorf("request %d after %s", i, gap)
			}
		}
	})
}

// A rate limit that is hardly above nothing is a limit.
func TestTinyRate(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.RateLimit = 1e-11 })
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 10)
		time.Sleep(10 * time.Second)
		if n := len(w.receiver.Of("w")); n > 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// Another max_in_flight, another rate limit, or none, act at once, also while requests are in flight.
func TestLimitGrows(t *testing.T) {
	inWorld(t, 1, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(1))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 10)
		time.Sleep(2 * time.Second)
		w.change("w", atOnce(8))
		time.Sleep(2 * time.Second)
		if n := len(w.receiver.Of("w")); n != 8 {
			t.Errorf("%d requests", n)
		}
		w.change("w", func(e *record.Endpoint) { e.RateLimit = 0.001; e.MaxInFlight = 8 })
		time.Sleep(time.Hour / 4)
		w.change("w", func(e *record.Endpoint) { e.RateLimit = 0 })
		w.send("w", 10, 10)
		time.Sleep(2 * time.Minute)
		if n := len(w.delivered("w")); n != 20 {
			t.Errorf("%d delivered two minutes after the rate limit was lifted", n)
		}
	})
}
