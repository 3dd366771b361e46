package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Ten failed attempts in a row pause; everything is parked in order; a resume sends
// the parked events first, then the new ones. In between everything is restarted.
func TestTenFailuresPauseUntilResumed(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusInternalServerError), func(w *world) {
		w.webhook("down")
		w.dispatch("a")
		w.send("down", 0, 30)
		w.until("for the pause", time.Minute, func() bool { s := w.state("down"); return s.HasPause(record.PauseFailures) })
		w.until("for all to be parked", time.Minute, func() bool { p := w.state("down").Parked; return p != nil && p.Count == 30 })
		if n := len(w.receiver.Of("down")); n != 10 {
			t.Fatalf("%d requests before the pause, want 10", n)
		}

		w.stop("a")
		w.dispatch("b")
		w.send("down", 30, 5)
		w.until("for the new ones to be parked", time.Minute, func() bool { return w.state("down").Parked.Count == 35 })
		if n := len(w.receiver.Of("down")); n != 10 {
			t.Fatalf("%d requests to a paused webhook", n-10)
		}

		w.receiver.Answer("down", kafkatest.Always(http.StatusOK))
		if r := w.command("down", record.ActionResume); r.Result != record.ResultDone {
			t.Fatalf("resume: %+v", r)
		}
		w.send("down", 35, 5)
		w.finish()
		if n := len(w.receiver.Of("down")); n != 50 {
			t.Errorf("%d requests in all, want 10 failed and 40 delivered", n)
		}
		if s := w.state("down"); !s.Healthy() {
			t.Errorf("state after the resume: %s", s.Marshal())
		}
	})
}

// A person pauses and resumes; twice is once; reasons of the configuration stay.
func TestPauseByHand(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusOK), func(w *world) {
		w.webhook("fine")
		w.dispatch("a")
		w.send("fine", 0, 5)
		w.until("for the first ones", time.Minute, func() bool { return len(w.receiver.Of("fine")) == 5 })
		for range 2 {
			if r := w.command("fine", record.ActionPause); r.Result != record.ResultDone {
				t.Fatalf("pause: %+v", r)
			}
		}
		w.send("fine", 5, 5)
		w.until("for them to be parked", time.Minute, func() bool { p := w.state("fine").Parked; return p != nil && p.Count == 5 })
		if n := len(w.receiver.Of("fine")); n != 5 {
			t.Errorf("%d requests while paused", n-5)
		}
		for range 2 {
			if r := w.command("fine", record.ActionResume); r.Result != record.ResultDone {
				t.Fatalf("resume: %+v", r)
			}
		}
		if r := w.command("nobody", record.ActionPause); r.Result != record.ResultRefused {
			t.Errorf("pausing a webhook that does not exist: %+v", r)
		}
		w.finish()
		if n := len(w.receiver.Of("fine")); n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
	})
}

// Pausing and resuming while events flow loses nothing and keeps the order.
func TestPauseInTraffic(t *testing.T) {
	suite(t, kafkatest.After(5*time.Millisecond, kafkatest.FailSome(0.2, 1)), func(w *world) {
		w.webhook("busy", neverPause)
		w.dispatch("a")
		for i := range 8 {
			w.send("busy", i*25, 25)
			action := record.ActionPause
			if i%2 == 1 {
				action = record.ActionResume
			}
			w.command("busy", action)
		}
		w.send("busy", 8*25, 100) // behind what is parked, which returns meanwhile
		w.finish()
	})
}
