package dispatcher

import (
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

const dedupWindow = 10 * time.Minute

func remembers(o *Options) { o.DedupWindow = dedupWindow }

// duplicates counts the attempt records of a webhook that say so.
func (w *world) duplicates(webhook string) (n int) {
	for _, a := range w.attempts(webhook) {
		if a.Outcome == record.Duplicate {
			n++
			if a.Attempt != 0 || a.Status != 0 {
				w.t.Errorf("a duplicate has attempt %d, status %d", a.Attempt, a.Status)
			}
		}
	}
	return n
}

// A second copy is not delivered within the window, and is after it; another webhook's is none.
func TestDuplicates(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("other")
		a := w.start("a", remembers)
		a.owns(0, 1)
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		w.send("w", 0, 1)
		copied := w.event("other", 0)
		for i := range copied.Headers {
			if copied.Headers[i].Key == "ce_id" {
				copied.Headers[i].Value = []byte(eventID("w", 0))
			}
		}
		w.produce(copied)
		w.until("the second copy is a duplicate", func() bool { return w.duplicates("w") == 1 })
		w.until("the other webhook gets its own", func() bool { return len(w.receiver.Of("other")) == 1 })
		if got := a.metric("duplicates_total"); got != 1 {
			t.Errorf("duplicates_total is %v", got)
		}
		// The next owner remembers it too.
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		b := w.start("b", remembers)
		b.owns(0, 1)
		w.send("w", 0, 1)
		w.until("so is the third", func() bool { return w.duplicates("w") == 2 })
		time.Sleep(dedupWindow)
		w.send("w", 0, 1)
		w.until("after the window it is delivered again", func() bool { return len(w.receiver.Of("w")) == 2 })
		b.quiesce()
	})
}

// A second copy that is met while the first is in flight waits for its outcome.
func TestDuplicateInFlight(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   int
		requests int
	}{{"delivered", 200, 1}, {"failed", 500, 2}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", inOrder(record.OrderNone))
				w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
					if q.Nth == 1 {
						return kafkatest.Response{Status: c.status, Delay: 10 * time.Second}
					}
					return kafkatest.Response{Status: 200}
				})
				w.send("w", 0, 1)
				w.send("w", 0, 1)
				a := w.start("a", remembers)
				w.until("one of them is a duplicate", func() bool { return w.duplicates("w") == 1 })
				a.quiesce()
				all := w.receiver.Of("w")
				if len(all) != c.requests {
					t.Fatalf("%d requests, want %d", len(all), c.requests)
				}
				if len(all) == 2 && all[1].Start.Before(all[0].End) {
					t.Error("the second copy did not wait")
				}
			})
		})
	}
}

// With a window of 0 every copy is delivered.
func TestNoDedup(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.send("w", 0, 1)
		w.send("w", 0, 1)
		w.start("a")
		w.until("both are delivered", func() bool { return len(w.receiver.Of("w")) == 2 })
	})
}

// A copy that waits for the first one's outcome keeps back what follows it under its own
// ordering key, where that is another one.
func TestCopyUnderAnotherKey(t *testing.T) {
	for _, o := range []record.Ordering{record.OrderKey, record.OrderStrictKey} {
		inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
			w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
				if q.EventID == eventID("w", 0) && q.Nth == 1 {
					return kafkatest.Response{Status: 500, Delay: 10 * time.Second}
				}
				return kafkatest.Response{Status: 200}
			})
			w.webhook("w", inOrder(o))
			w.produce(w.keyed("w", 0, "a"), w.keyed("w", 0, "b"), w.keyed("w", 1, "b"))
			w.start("a", remembers)
			w.until("all have ended", func() bool { return len(w.delivered("w"))+w.duplicates("w") == 3 })
			zero, one := eventID("w", 0), eventID("w", 1)
			mustEqual(t, "starts in order "+string(o), w.starts("w"), []string{zero + "/1", zero + "/1", one + "/1"})
		})
	}
}

// A copy that comes while the first one waits, in a delay topic or parked, goes its way:
// whichever has its turn after the other was delivered is the duplicate. One that comes
// after the first has died is an event like any other.
func TestCopyOfOneThatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*record.Endpoint)
		wait       func(w *world)
		duplicates int
	}{
		"in a delay topic": {neverPauses, func(w *world) {
			w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
		}, 1},
		"parked": {neverPauses, func(w *world) {
			w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
			w.do("w", record.ActionPause)
			w.until("it is parked", func() bool { return len(w.parked("w")) == 1 })
			w.do("w", record.ActionResume)
		}, 1},
		"dead": {func(e *record.Endpoint) { e.MaxAttempts = 1 }, func(w *world) {
			w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", c.change)
				w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
					if q.Nth == 1 {
						return kafkatest.Response{Status: 500}
					}
					return kafkatest.Response{Status: 200}
				})
				a := w.start("a", remembers)
				a.owns(0)
				w.send("w", 0, 1)
				c.wait(w)
				w.send("w", 0, 1)
				time.Sleep(time.Minute)
				a.quiesce()
				if n := len(w.receiver.Of("w")); n != 2 {
					t.Errorf("%d requests, want the failed one and one delivery: %v", n, w.starts("w"))
				}
				if n := w.duplicates("w"); n != c.duplicates {
					t.Errorf("%d duplicates, want %d", n, c.duplicates)
				}
			})
		})
	}
}
