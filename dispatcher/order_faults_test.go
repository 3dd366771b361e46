package dispatcher

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Once a head has been found and delivered, the rest of what is parked is read back.
func TestAfterTheHeadTheRest(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.webhook("other")
		w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 10*time.Second))
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
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
	})
}

// What a head has kept back starts when its death is committed, not before: the next owner would send the head after it.
func TestHeadDiesUncommitted(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict), func(e *record.Endpoint) { e.MaxAttempts = 2 })
		w.receiver.Answer("w", eventFails(eventID("w", 0), always, 0))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 2)
		w.until("the first attempt has failed", func() bool { return len(w.attempts("w")) == 1 })
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.until("the second has been made", func() bool { return len(w.receiver.Of("w")) == 2 })
		time.Sleep(time.Second)
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/2"})
	})
}

// 70 keys fail, and more than 64 keep no heads of their own: all is delivered all the same, through a restart.
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
			t.Errorf("%d delivered after ten minutes, want 3; state %s", n, w.state("w").Marshal())
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
		w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 0))
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
		w.receiver.Answer("w", eventFails(eventID("w", 0), 3, 0))
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

// The order is changed to none and back to strict while a head waits: all is delivered, and no head is left behind.
func TestOrderThereAndBack(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", eventFails(eventID("w", 0), 3, 0))
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

// A webhook is deleted and made anew while its head waits and is in flight: the old events die, the new ones go out.
func TestMadeAnewWithAHead(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", eventFails(eventID("w", 0), always, time.Second))
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

// Second copies of an event that fails once, in each order: it is delivered once, and no head is left behind.
func TestDuplicatesInEachOrder(t *testing.T) {
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
