package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// The wake of a webhook that was forgotten leaves the one alone that came after it: nothing overtakes.
func TestWakeOfAForgottenWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict), func(e *record.Endpoint) { e.RateLimit = 2 })
		w.receiver.Answer("w", eventFails(eventID("w", 1), always, 3*time.Second))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		time.Sleep(200 * time.Millisecond)
		w.send("w", 1, 1)
		time.Sleep(time.Second)
		w.send("w", 2, 1)
		time.Sleep(time.Second)
		w.send("w", 3, 1)
		time.Sleep(time.Minute)
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-1/1", "w-1/2", "w-1/3", "w-1/4", "w-1/5", "w-2/1", "w-3/1"})
	})
}

// ... and nothing of it that is parked is lost.
func TestWakeOfAForgottenWebhookWithParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.RateLimit = 0.5 })
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID != eventID("w", 0) {
				return kafkatest.Response{Status: 200, Delay: 10 * time.Second}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		time.Sleep(200 * time.Millisecond)
		w.send("w", 1, 20) // 1 in flight on a new object, which is forgotten after 2s
		time.Sleep(3 * time.Second)
		w.do("w", record.ActionPause)
		w.send("w", 21, 5)
		time.Sleep(20 * time.Minute)
		w.do("w", record.ActionResume)
		time.Sleep(2 * time.Hour)
		if n := len(w.delivered("w")); n != 26 {
			t.Errorf("%d of 26 delivered; state %s", n, w.state("w").Marshal())
		}
	})
}

// A webhook that is deleted while it waits at its own wish: its parked events die, and one made anew is sent to.
func TestDeletedWhileItWaits(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 10*time.Minute))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 5)
		w.until("parked", func() bool { return len(w.parked("w")) == 5 })
		a.quiesce()
		w.delete("w")
		w.until("they are dead", func() bool { return len(w.dead()) == 5 })
		w.webhook("w")
		time.Sleep(time.Second)
		w.send("w", 5, 3)
		time.Sleep(20 * time.Minute)
		if n := len(w.receiver.Of("w")); n < 3 {
			t.Errorf("made anew, it gets nothing: %d requests", n)
		}
	})
}

// A wait that ended while nobody owned the number is over, and its parked events go out in order.
func TestWaitThatEndedWhileAway(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 10*time.Minute))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 5)
		w.until("parked", func() bool { return len(w.parked("w")) == 5 })
		a.quiesce()
		a.stop()
		<-a.ended
		time.Sleep(time.Hour)
		b := w.start("b")
		b.owns(0)
		time.Sleep(time.Minute)
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("%s", s.Marshal())
		}
	})
}

// A resume of a webhook that waits at its own wish says that it waits.
func TestResumeOfAWebhookThatWaits(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 50*time.Minute))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("parked", func() bool { return len(w.parked("w")) == 3 })
		r := w.do("w", record.ActionResume)
		if strings.Contains(r.Detail, "go out first") && !strings.Contains(r.Detail, "wait") {
			t.Errorf("resume says %q, and nothing goes out for 50 minutes", r.Detail)
		}
	})
}

// Lateness does not count the wait that the webhook has asked for, or its rate limit.
func TestLateness(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x", func(e *record.Endpoint) { e.RateLimit = 0.1 })
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 20*time.Second))
		w.receiver.Answer("x", kafkatest.FailFirst(1))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.send("x", 0, 1)
		w.until("delivered", func() bool { return len(w.delivered("w")) == 1 && len(w.delivered("x")) == 1 })
		for _, id := range []string{"w", "x"} {
			for _, at := range w.attempts(id) {
				if at.LatenessMS > 50 {
					t.Errorf("%s attempt %d: lateness %d ms", at.EventID, at.Attempt, at.LatenessMS)
				}
			}
		}
	})
}

// auto_resume that is set while the webhook is paused ends the pause.
func TestAutoResumeLater(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		w.receiver.Answer("w", kafkatest.Always(200))
		w.change("w", func(e *record.Endpoint) { e.AutoResume = record.Duration(time.Minute) })
		time.Sleep(5 * time.Minute)
		if w.pausedBy("w", record.PauseFailures) {
			t.Error("it is still paused five minutes later, with auto_resume 1m")
		}
	})
}

// auto_resume ends a pause by failures, and leaves one by hand.
func TestAutoResumeByHand(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.AutoResume = record.Duration(time.Minute) })
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		w.do("w", record.ActionPause)
		time.Sleep(2 * time.Minute)
		if !w.pausedBy("w", record.PauseManual) {
			t.Error("the pause by hand is gone")
		}
	})
}

// A wait ends also when the wall clock is set back meanwhile. (Not in a bubble: times there are not monotonic.)
func TestClockStep(t *testing.T) {
	d := testDispatcher(t)
	n := newNumber(d, 0, 1, "m", nil)
	defer n.cancel(errReleased)
	n.out.trackers = map[string]*tracker.Tracker{}
	for _, topic := range d.topics {
		n.out.trackers[topic] = tracker.New(0, tracker.Set{})
	}
	at := settable(time.Now())
	now, back := at(0, 0), at(time.Second, -10*time.Second)
	if back.Sub(now) != time.Second || back.Round(0).Sub(now.Round(0)) != -9*time.Second {
		t.Fatal("the clock can't be set")
	}
	w := n.webhook("w")
	w.state.ConsecutiveFailures = 1
	n.wait(now, w, now.Add(10*time.Minute))
	if !w.waits {
		t.Fatal("it does not wait")
	}
	for after := time.Second; after < 24*time.Hour; after += time.Second {
		n.leaveDue(at(after, -10*time.Second))
	}
	if w.waits {
		t.Errorf("a day later it still waits, until %s; %d in the due queue", w.state.HoldUntil, n.due.Len())
	}
}
