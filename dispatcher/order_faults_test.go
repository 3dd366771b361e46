package dispatcher

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// Once a head has been found and delivered, the rest of what is parked is read back.
func TestSeekingForEver(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.webhook("other")
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) && q.Attempt == 1 {
				return kafkatest.Response{Status: 500, Delay: 10 * time.Second}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		w.do("other", record.ActionPause)
		w.send("w", 0, 5)
		w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.until("all are parked", func() bool { return len(w.parked("w")) == 5 })
		w.others("other", 0, 300)
		w.until("the others are parked", func() bool { return len(w.parked("other")) == 300 })
		a.quiesce()
		var over atomic.Bool
		w.cluster.Fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			for _, topic := range r.(*kmsg.FetchRequest).Topics {
				if info := w.cluster.Fake.TopicIDInfo(topic.TopicID); info != nil && info.Topic == w.topo.Parked() && !over.Load() {
					w.cluster.Fake.SleepControl(func() { time.Sleep(200 * time.Millisecond) })
				}
			}
			w.cluster.Fake.KeepControl()
			return nil, nil, false
		})
		w.do("w", record.ActionResume)
		time.Sleep(time.Minute)
		over.Store(true)
		time.Sleep(10 * time.Minute)
		a.look(0, func(n *number) {
			if x := n.webhooks["w"]; x != nil {
				t.Logf("seeking %v seek %d cursor %d state %s", x.parked.seeking, x.parked.seek, x.parked.cursor, x.state.Marshal())
			}
		})
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
	})
}

// The wake of a webhook that was forgotten leaves the one alone that came after it: nothing overtakes.
func TestWakeForgetsAnother(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict), func(e *record.Endpoint) { e.RateLimit = 2 })
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 1) {
				return kafkatest.Response{Status: 500, Delay: 3 * time.Second}
			}
			return kafkatest.Response{Status: 200}
		})
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
		for _, r := range w.receiver.Of("w") {
			t.Logf("%s/%d %s - %s", r.EventID, r.Attempt, r.Start.Format("05.000"), r.End.Format("05.000"))
		}
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-1/1", "w-1/2", "w-1/3", "w-1/4", "w-1/5", "w-2/1", "w-3/1"})
	})
}

// ... and nothing that is parked is lost.
func TestWakeForgetsParked(t *testing.T) {
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
		t.Logf("sent while paused: %v", w.starts("w"))
		w.do("w", record.ActionResume)
		time.Sleep(2 * time.Hour)
		if n := len(w.delivered("w")); n != 26 {
			t.Errorf("%d of 26 delivered; state %s", n, w.state("w").Marshal())
		}
	})
}

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
		time.Sleep(10 * time.Second)
		t.Logf("%d dead after 10 s", len(w.dead()))
		time.Sleep(20 * time.Minute)
		if n := len(w.dead()); n != 5 {
			t.Errorf("%d dead after 20 min, want 5; state %s", n, w.state("w").Marshal())
		}
		w.webhook("w")
		time.Sleep(time.Second)
		w.send("w", 5, 3)
		time.Sleep(20 * time.Minute)
		if n := len(w.receiver.Of("w")); n < 3 {
			t.Errorf("made anew, it gets nothing: %d requests", n)
		}
	})
}

// A head whose retry record is refused dies, and keeps nobody back.
func TestHeadRefused(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict), neverPauses)
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		w.limit(w.topo.Retry(2*time.Second), 4000)
		big := w.event("w", 0)
		big.Value = noise(1, 5000)
		w.produce(big)
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		w.send("w", 1, 3)
		time.Sleep(10 * time.Minute)
		if n := len(w.delivered("w")); n != 3 {
			t.Errorf("%d delivered after an hour, want 3; state %s", n, w.state("w").Marshal())
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
			t.Error("it is still paused an hour later, with auto_resume 1m")
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

// stepped is now, with the wall clock set by d, the monotonic one as it is.
func stepped(now time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += uint64(int64(d/time.Second) << 30)
	return now
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
	now := time.Now()
	back := stepped(now.Add(time.Second), -10*time.Second)
	if back.Sub(now) != time.Second || back.Round(0).Sub(now.Round(0)) != -9*time.Second {
		t.Fatal("the clock can't be set")
	}
	w := n.webhook("w")
	w.state.ConsecutiveFailures = 1
	n.wait(now, w, now.Add(10*time.Minute))
	if !w.waits {
		t.Fatal("it does not wait")
	}
	for at := time.Second; at < 24*time.Hour; at += time.Second {
		n.leaveDue(stepped(now.Add(at), -10*time.Second))
	}
	if w.waits {
		t.Errorf("a day later it still waits, until %s; %d in the due queue", w.state.HoldUntil, n.due.Len())
	}
}

// A number that began twice, because reading failed, acts on nothing of the first try.
func TestRestoreTwice(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", asksToWait(eventID("w", 0), 10*time.Minute))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("parked", func() bool { return len(w.parked("w")) == 1 })
		a.quiesce()
		a.stop()
		<-a.ended
		var failed atomic.Int32
		w.cluster.Fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.KeepControl()
			req := r.(*kmsg.ListOffsetsRequest)
			for _, topic := range req.Topics {
				if topic.Topic == w.topo.Parked() && failed.Load() == 0 {
					failed.Add(1)
					resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
					for _, tp := range req.Topics {
						st := kmsg.NewListOffsetsResponseTopic()
						st.Topic = tp.Topic
						for _, p := range tp.Partitions {
							sp := kmsg.NewListOffsetsResponseTopicPartition()
							sp.Partition = p.Partition
							sp.ErrorCode = 29 // TOPIC_AUTHORIZATION_FAILED
							st.Partitions = append(st.Partitions, sp)
						}
						resp.Topics = append(resp.Topics, st)
					}
					return resp, nil, true
				}
			}
			return nil, nil, false
		})
		w.receiver.Answer("w", kafkatest.After(20*time.Second, kafkatest.Always(200)))
		b := w.start("b")
		b.owns(0)
		until := w.state("w").HoldUntil
		w.send("w", 1, 30)
		time.Sleep(time.Until(until.Add(10 * time.Second)))
		t.Logf("failed %d; state 10 s after the wait: %s", failed.Load(), w.state("w").Marshal())
		b.kill()
		c := w.start("c")
		c.owns(0)
		time.Sleep(20 * time.Minute)
		if n := len(w.delivered("w")); n != 31 {
			t.Errorf("%d delivered, want 31; state %s", n, w.state("w").Marshal())
		}
	})
}

// One key that fails keeps no other back, also when all is parked.
func TestStrictKeyParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrictKey), func(e *record.Endpoint) {
			e.Schedule = []record.Duration{record.Duration(time.Minute + 30*time.Second)}
			e.MaxAttempts = 2
		})
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) && q.Attempt == 1 {
				return kafkatest.Response{Status: 500}
			}
			return kafkatest.Response{Status: 200}
		})
		a := w.start("a")
		a.owns(0)
		w.produce(w.keyed("w", 0, "a"))
		w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
		w.produce(w.keyed("w", 1, "a"))
		time.Sleep(time.Second)
		w.do("w", record.ActionPause)
		w.do("w", record.ActionResume)
		w.produce(w.keyed("w", 2, "b"))
		began := time.Now()
		w.until("the other key's is delivered", func() bool { return len(w.delivered("w")) > 0 })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("an event of another key waited %s: %v", took, w.starts("w"))
		}
	})
}

// strict becomes strict_key while a head waits: nothing of its key overtakes it.
func TestStrictToStrictKey(t *testing.T) {
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
		w.produce(w.keyed("w", 0, "a"), w.keyed("w", 1, "a"))
		w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
		w.change("w", inOrder(record.OrderStrictKey))
		time.Sleep(time.Minute)
		if all := w.starts("w"); all[1] == "w-1/1" {
			t.Errorf("the order was %v", all)
		}
	})
}

// Slow returning webhooks keep no other from returning.
func TestReturnedFull(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		var ids []string
		for i := range 20 {
			id := "limited" + string(rune('a'+i))
			ids = append(ids, id)
			w.webhook(id, func(e *record.Endpoint) { e.RateLimit = 0.01 })
		}
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		for _, id := range append(ids, "w") {
			w.do(id, record.ActionPause)
			w.send(id, 0, 150)
		}
		w.until("all are parked", func() bool { return len(w.parked("w")) == 150 && len(w.parked(ids[19])) == 150 })
		for _, id := range ids {
			w.do(id, record.ActionResume)
		}
		time.Sleep(10 * time.Minute)
		began := time.Now()
		w.do("w", record.ActionResume)
		w.until("w begins", func() bool { return len(w.receiver.Of("w")) > 0 || time.Since(began) > 4*time.Minute })
		a.look(0, func(n *number) { t.Logf("returned %+v", n.flow.returned) })
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it has begun after %s", took)
		}
	})
}

// Deliveries without a record count as uncommitted, too.
func TestSuccessesOffUncommitted(t *testing.T) {
	inWorld(t, 1, kafkatest.After(100*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		wi := &wire{}
		a := w.start("a", wired(wi), func(o *Options) { o.Attempts.Successes = "off" })
		a.owns(0)
		w.send("w", 0, 1)
		time.Sleep(time.Second)
		a.quiesce()
		w.send("w", 1, 900)
		time.Sleep(time.Second)
		before := len(w.receiver.Of("w"))
		wi.loseRequests(kmsg.EndTxn, -1)
		wi.loseRequests(kmsg.AddOffsetsToTxn, -1)
		wi.loseRequests(kmsg.TxnOffsetCommit, -1)
		time.Sleep(20 * time.Second)
		n := len(w.receiver.Of("w")) - before
		t.Logf("%d requests in 20 s without a commit (2 s allow some 25)", n)
		if n > 40 {
			t.Errorf("%d requests", n)
		}
		wi.heal()
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

var _ = kgo.Record{}
