package dispatcher

import (
	"strings"
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

// A request that is cut by a lost lease, while its webhook is paused and its followers are parked, is made again before them.
func TestCutBehind(t *testing.T) {
	for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey} {
		t.Run(string(o), func(t *testing.T) {
			inWorld(t, 1, slowOnce, func(t *testing.T, w *world) {
				w.webhook("w", inOrder(o))
				a := w.start("a")
				a.owns(0)
				w.send("w", 0, 5)
				w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
				w.do("w", record.ActionPause)
				w.until("four are parked", func() bool { return len(w.parked("w")) == 4 })
				a.number(0).cut("a test")
				w.until("all are parked", func() bool { return len(w.parked("w")) == 5 })
				w.do("w", record.ActionResume)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
				mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/1", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
			})
		})
	}
}

// The same where the owner dies.
func TestKilledBehind(t *testing.T) {
	for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey} {
		t.Run(string(o), func(t *testing.T) {
			inWorld(t, 1, slowOnce, func(t *testing.T, w *world) {
				w.webhook("w", inOrder(o))
				a := w.start("a")
				a.owns(0)
				w.send("w", 0, 5)
				w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
				w.do("w", record.ActionPause)
				w.until("four are parked", func() bool { return len(w.parked("w")) == 4 })
				a.quiesce()
				a.kill()
				b := w.start("b")
				b.owns(0)
				w.do("w", record.ActionResume)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
				mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/1", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
			})
		})
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

// 70 failing keys: more than 64 keep heads; all is delivered in the order of its key, through a restart.
func TestManyHeads(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrictKey), neverPauses)
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.Attempt < 2 {
				return kafkatest.Response{Status: 500}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		for i := range 210 {
			w.produce(w.keyed("w", i, string(rune('A'+i%70))))
		}
		time.Sleep(3 * time.Second)
		a.stop()
		<-a.ended
		b := w.start("b")
		b.owns(0)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 210 })
		b.quiesce()
		w.oneChain("w")
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// The configuration is broken while auto_resume comes due, and is mended later.
func TestResumeAnswersActiveWhileWaiting(t *testing.T) {
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
		time.Sleep(time.Minute)
		if n := len(w.receiver.Of("w")); n > 1 {
			t.Logf("it went on")
		}
		s := w.state("w")
		t.Logf("state %s", s.Marshal())
	})
}

// Two heads dying together, a max_in_flight above one, one slow: others may start after both deaths.
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

// A second copy waits for the first in flight; a retry of the first is due meanwhile.
func TestDedupeStrict(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey, record.OrderKey, record.OrderNone} {
			id := string(o)
			w.webhook(id, inOrder(o))
			w.send(id, 0, 1)
			w.send(id, 0, 1)
			w.send(id, 1, 1)
			w.send(id, 0, 1)
		}
		a := w.start("a", remembers)
		a.owns(0)
		time.Sleep(10 * time.Minute)
		for _, o := range []record.Ordering{record.OrderStrict, record.OrderStrictKey, record.OrderKey, record.OrderNone} {
			id := string(o)
			s := w.state(id)
			if w.duplicates(id)+len(w.delivered(id)) != 4 || !s.Healthy() {
				t.Errorf("%s: %d duplicates, %v; %v; %s", id, w.duplicates(id), w.delivered(id), w.starts(id), s.Marshal())
			}
			if len(w.delivered(id)) != 2 {
				t.Errorf("%s: %v", id, w.delivered(id))
			}
		}
	})
}

// A half-open webhook with many due retries, whose streak is ended by a resume.
func TestResumeHalfOpen(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8), neverPauses)
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(500)))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 50)
		time.Sleep(65 * time.Second)
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		before := len(w.receiver.Of("w"))
		w.do("w", record.ActionResume)
		time.Sleep(2 * time.Second)
		t.Logf("%d more within 2 s of the resume", len(w.receiver.Of("w"))-before)
		w.until("all", func() bool { return len(w.delivered("w")) == 50 })
	})
}

// The limit grows while one is in flight.
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

func Test4Recreated(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) {
				return kafkatest.Response{Status: 500, Delay: time.Second}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 5)
		w.until("second is in flight", func() bool { return len(w.receiver.Of("w")) == 3 })
		w.delete("w")
		time.Sleep(300 * time.Millisecond)
		w.webhook("w", inOrder(record.OrderStrict))
		time.Sleep(2 * time.Second)
		w.send("w", 5, 5)
		time.Sleep(time.Hour)
		s := w.state("w")
		if len(w.delivered("w")) != 5 || len(w.dead()) != 5 || !s.Healthy() {
			t.Errorf("%v, %d dead, %s", w.starts("w"), len(w.dead()), s.Marshal())
		}
	})
}

func Test4HoldInThePast(t *testing.T) {
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

func Test4OneSlot(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2, neverPauses)
		w.receiver.Answer(ids[0], kafkatest.After(5*time.Second, kafkatest.Always(500)))
		a := w.start("a", func(o *Options) { o.Config.MaxInFlight = 1 })
		a.owns(0, 1)
		w.send(ids[0], 0, 50)
		w.send(ids[1], 0, 50)
		w.until("all are delivered", func() bool { return len(w.delivered(ids[1])) == 50 })
		time.Sleep(time.Hour)
		if n := a.d.slots.left(); n != 1 || len(w.dead()) != 50 {
			t.Errorf("%d left, %d dead", n, len(w.dead()))
		}
	})
}

func Test4OrderThereAndBack(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) && q.Attempt < 4 {
				return kafkatest.Response{Status: 500}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 5)
		w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
		w.change("w", inOrder(record.OrderNone))
		time.Sleep(time.Minute)
		w.send("w", 5, 5)
		w.change("w", inOrder(record.OrderStrict))
		time.Sleep(time.Minute)
		w.send("w", 10, 5)
		time.Sleep(time.Minute)
		if s := w.state("w"); !s.Healthy() || len(w.delivered("w")) != 15 {
			t.Errorf("%d %s", len(w.delivered("w")), s.Marshal())
		}
	})
}

// The head lies behind its followers in parked, and is discarded, or skipped.
func Test4HeadByHand(t *testing.T) {
	for _, how := range []string{"discard", "skip", "delete"} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", inOrder(record.OrderStrict))
				w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
					if q.EventID == eventID("w", 0) && q.Attempt == 1 {
						return kafkatest.Response{Status: 500, Delay: 10 * time.Second}
					}
					return kafkatest.Response{Status: 200}
				})
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
					t.Logf("%+v", w.discard("w", middle))
				case "skip":
					t.Logf("%+v", w.skip(w.topo.Parked(), 5))
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
