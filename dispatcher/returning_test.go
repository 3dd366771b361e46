package dispatcher

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// others parks n events of another webhook, so that a pass takes more than one batch.
func (w *world) others(webhook string, first, n int) {
	w.t.Helper()
	var records []*kgo.Record
	for i := first; i < first+n; i++ {
		r := w.event(webhook, i)
		r.Value = noise(i, 20_000)
		records = append(records, r)
	}
	w.produce(records...)
}

// A webhook that returns is paused while the pass that brings its events back goes on:
//
//  1. the pass has read the first of its events, and is far behind them;
//  2. it is paused: they leave memory, and still lie in parked;
//  3. the pass reads on. Its place must not pass over theirs.
func TestPausedInTheMiddleOfAPass(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		w.webhook("other")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.do("other", record.ActionPause)
		w.send("w", 0, 10)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 10 })
		w.others("other", 0, 300)
		w.until("the others are parked", func() bool { return len(w.parked("other")) == 300 })
		a.quiesce()
		// The first is quick, and brings the others; they are not.
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) {
				return kafkatest.Response{Status: 200}
			}
			return kafkatest.Response{Status: 200, Delay: time.Second}
		})

		// Each fetch of the pass takes a while, so that the pause falls into it.
		fetches := 0
		var over atomic.Bool
		w.cluster.Fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			for _, topic := range r.(*kmsg.FetchRequest).Topics {
				if info := w.cluster.Fake.TopicIDInfo(topic.TopicID); info != nil && info.Topic == w.topo.Parked() && !over.Load() {
					fetches++
					w.cluster.Fake.SleepControl(func() { time.Sleep(500 * time.Millisecond) })
				}
			}
			return nil, nil, false
		})
		w.do("w", record.ActionResume)
		w.until("the second is sent", func() bool { return len(w.receiver.Of("w")) == 2 })
		w.do("w", record.ActionPause)
		time.Sleep(time.Minute)
		if fetches < 2 { // the one with its first events, and one behind them
			t.Fatalf("the pass took %d fetches: this test shows nothing", fetches)
		}
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 10 })
		over.Store(true)
		time.Sleep(time.Second)
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 10))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// What was parked is read back, and dealt with, before the number was told that it is committed:
//
//  1. w returns from parked; a new event of it is parked behind the others;
//  2. the answer to the end of that transaction is lost, though it was committed, and stays unknown for a while;
//  3. the pass finds the event, and w delivers all it has;
//  4. the number is told where the event has landed.
func TestReturnsBeforeItHasLanded(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		line := &wire{}
		w.webhook("w", neverPauses)
		a := w.start("a", wired(line), func(o *Options) { o.Config.MaxUncommitted = 30 * time.Second })
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 2)
		w.until("both are parked", func() bool { return len(w.parked("w")) == 2 })
		// Quickly enough for more than one to be read back, once the first is answered.
		w.receiver.Answer("w", kafkatest.After(quickAnswer-100*time.Millisecond, kafkatest.Always(200)))
		w.do("w", record.ActionResume)
		w.until("it returns", func() bool { return len(w.receiver.Of("w")) == 1 })

		lost := line.loseAnswers(kmsg.EndTxn, 1)
		w.send("w", 2, 1)
		w.until("the answer is lost", func() bool { return line.hits(lost) == 1 })
		line.loseRequests(kmsg.EndTxn, -1)                 // the client asks again by itself
		more := line.loseRequests(kmsg.InitProducerID, -1) // by which it is settled
		time.Sleep(15 * time.Second)
		line.heal()
		if line.hits(more) == 0 {
			t.Fatal("nobody tried to settle it: this test shows nothing")
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 3 })
		a.quiesce()
		w.send("w", 3, 1)
		w.until("the next is delivered", func() bool { return len(w.delivered("w")) == 4 })
		time.Sleep(time.Minute)
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 4))
		w.oneChain("w")
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// Retention has taken parked events: that is said, and the webhook does not wait for them for ever.
func TestParkedEventsAreGone(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 10)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 10 })
		// The topic ends with somebody else's.
		w.webhook("other")
		w.do("other", record.ActionPause)
		w.send("other", 0, 3)
		w.until("the others are parked", func() bool { return len(w.parked("other")) == 3 })
		a.quiesce()
		if err := w.cluster.Fake.DeleteRecords(w.topo.Parked(), 0, 4); err != nil {
			t.Fatal(err)
		}
		w.do("w", record.ActionResume)
		w.until("what is left is delivered", func() bool { return len(w.delivered("w")) == 6 })
		w.send("w", 10, 1)
		w.until("what comes is delivered", func() bool { return len(w.delivered("w")) == 7 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), append(eventIDs("w", 4, 6), eventIDs("w", 10, 1)...))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
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
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it has begun after %s", took)
		}
	})
}
