package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// slowOnce: event 0's first request takes 25 s, all the rest none.
func slowOnce(q *kafkatest.Request) kafkatest.Response {
	if q.EventID == eventID("w", 0) && q.Nth == 1 {
		return kafkatest.Response{Status: 200, Delay: 25 * time.Second}
	}
	return kafkatest.Response{Status: 200}
}

// A request that is cut by a lost lease, or whose owner dies, while its webhook is paused and its followers are parked, is made again
// before them.
func TestCutBehind(t *testing.T) {
	for how, end := range map[string]func(w *world, a *process){
		"cut": func(w *world, a *process) {
			a.number(0).cut("a test")
			w.until("all are parked", func() bool { return len(w.parked("w")) == 5 })
		},
		"killed": func(w *world, a *process) {
			a.quiesce()
			a.kill()
			w.start("b").owns(0)
		},
	} {
		for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey} {
			t.Run(how+"/"+string(o), func(t *testing.T) {
				inWorld(t, 1, slowOnce, func(t *testing.T, w *world) {
					w.webhook("w", inOrder(o))
					a := w.start("a")
					a.owns(0)
					w.send("w", 0, 5)
					w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
					w.do("w", record.ActionPause)
					w.until("four are parked", func() bool { return len(w.parked("w")) == 4 })
					end(w, a)
					w.do("w", record.ActionResume)
					w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
					mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/1", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
				})
			})
		}
	}
}

// The same where the lane was parked because it was full.
func TestKilledBehindOverflow(t *testing.T) {
	inWorld(t, 1, slowOnce, func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.send("w", 1, laneLimit+5)
		w.until("the lane is parked", func() bool { return len(w.parked("w")) > laneLimit })
		a.quiesce()
		a.kill()
		b := w.start("b")
		b.owns(0)
		w.until("some are delivered", func() bool { return len(w.delivered("w")) >= 5 })
		mustEqual(t, "requests", w.starts("w")[:4], []string{"w-0/1", "w-0/1", "w-1/1", "w-2/1"})
	})
}

// The head lies behind its followers in parked, and is discarded, skipped, or deleted with its webhook: the others go on.
func TestHeadByHand(t *testing.T) {
	for _, how := range []string{"discard", "skip", "delete"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", inOrder(record.OrderStrict))
				w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 10*time.Second))
				a := w.start("a")
				a.owns(0)
				w.send("w", 0, 1)
				time.Sleep(time.Second)
				middle := time.Now()
				time.Sleep(time.Second)
				w.send("w", 1, 4)
				w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
				w.do("w", record.ActionPause)
				w.until("all are parked", func() bool { return len(w.parked("w")) == 5 })
				dead := 1
				switch how {
				case "discard":
					w.discard("w", middle)
				case "skip":
					w.skip(w.topo.Parked(), 5)
				case "delete":
					w.delete("w")
					dead = 5
				}
				if how != "delete" {
					w.do("w", record.ActionResume)
				}
				time.Sleep(time.Hour)
				if s := w.state("w"); !s.Healthy() || len(w.delivered("w")) != 5-dead || len(w.dead()) != dead {
					t.Errorf("%d dead, %v, %s", len(w.dead()), w.starts("w"), s.Marshal())
				}
			})
		})
	}
}

// What is in flight out of the parked topic when a due retry is parked, by a pause, is found there again: cut, or after its owner's death.
func TestInFlightFromParkedIsFoundAgain(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint(killed), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(20 * time.Second)} })
				w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
					switch {
					case q.EventID == eventID("w", 0) && q.Attempt == 1:
						return kafkatest.Response{Status: 500}
					case q.EventID == eventID("w", 1) && q.Nth == 1:
						return kafkatest.Response{Status: 200, Delay: 25 * time.Second}
					}
					return kafkatest.Response{Status: 200}
				})
				a := w.start("a")
				a.owns(0)
				w.send("w", 0, 1)
				w.until("the first has failed", func() bool { return len(w.attempts("w")) == 1 })
				w.do("w", record.ActionPause)
				w.send("w", 1, 3)
				w.until("three are parked", func() bool { return len(w.parked("w")) == 3 })
				w.change("w", func(e *record.Endpoint) { e.Ordering = record.OrderStrict }) // the retry is no head
				time.Sleep(time.Second)
				w.do("w", record.ActionResume)
				w.until("one is on its way", func() bool { return len(w.receiver.Of("w")) == 2 })
				time.Sleep(22 * time.Second) // the retry is due
				w.do("w", record.ActionPause)
				a.quiesce()
				if killed {
					a.kill()
					w.start("b").owns(0)
				} else {
					a.number(0).cut("a test")
				}
				time.Sleep(time.Second)
				w.do("w", record.ActionResume)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 4 })
				mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-1/1", "w-1/1", "w-2/1", "w-3/1", "w-0/2"})
			})
		})
	}
}
