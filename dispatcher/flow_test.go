package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// slowFirst takes its time over the first request, and then none.
func slowFirst(wait time.Duration) kafkatest.Script {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return func(*kafkatest.Request) kafkatest.Response {
		select {
		case <-first:
			return kafkatest.Response{Status: 200, Delay: wait}
		default:
			return kafkatest.Response{Status: 200}
		}
	}
}

// parkReasons are those of a webhook's parked events, each once.
func (w *world) parkReasons(webhook string) map[record.ParkReason]int {
	reasons := map[record.ParkReason]int{}
	for _, d := range w.parked(webhook) {
		reasons[d.Parked]++
	}
	return reasons
}

// A lane that is full is parked whole, in order; what comes then queues behind it; and all of it leaves in order, when the webhook can take it.
func TestFullLaneIsParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		const n = laneLimit + 300
		w.webhook("slow")
		w.receiver.Answer("slow", slowFirst(20*time.Second))
		w.webhook("quick")
		a := w.start("a")
		a.owns(0)
		w.send("slow", 0, n)
		w.send("quick", 0, 10)
		w.until("the quick ones are delivered", func() bool { return len(w.delivered("quick")) == 10 })
		w.until("the lane is parked", func() bool { return len(w.parked("slow")) >= n-1 }) // all but one in flight
		if got := len(w.receiver.Of("slow")); got != 1 {
			t.Errorf("%d requests to the slow one, want 1", got)
		}
		if reasons := w.parkReasons("slow"); len(reasons) != 1 || reasons[record.ParkOverflow] == 0 {
			t.Errorf("parked because of %v", reasons)
		}
		w.until("all are delivered", func() bool { return len(w.receiver.Of("slow")) >= n })
		a.quiesce()
		mustEqual(t, "sent", ids(w.receiver.Of("slow")), eventIDs("slow", 0, n))
		if s := w.state("slow"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		w.oneChain("slow")
	})
}

// An event that holds its partition's offset back too far is parked with its lane; the one in flight stays.
func TestLaneFarBehindIsParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("slow", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		w.receiver.Answer("slow", slowFirst(100*time.Second))
		w.webhook("quick")
		a := w.start("a")
		a.owns(0)
		w.send("slow", 0, 5)
		for i := range 3 {
			w.send("quick", i*2000, 2000)
		}
		w.until("the quick ones are sent", func() bool { return len(w.receiver.Requests()) == 6001 })
		w.until("the slow ones are parked", func() bool { return len(w.parked("slow")) == 4 })
		if reasons := w.parkReasons("slow"); reasons[record.ParkBehind] != 4 {
			t.Errorf("parked because of %v", reasons)
		}
		w.until("all are delivered", func() bool { return len(w.receiver.Of("slow")) == 5 })
		a.quiesce()
		mustEqual(t, "sent", ids(w.receiver.Of("slow")), eventIDs("slow", 0, 5))
		w.oneChain("slow")
	})
}

// Much more than fits waits in Kafka, not in memory, and comes in as there is room; nothing is lost.
func TestMemoryIsBounded(t *testing.T) {
	inWorld(t, 1, kafkatest.After(5*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		const webhooks, each = 12, 700
		names := make([]string, webhooks)
		for i := range names {
			names[i] = string(rune('a' + i))
			w.webhook(names[i])
		}
		for i := range each {
			var records []*kgo.Record
			for j, id := range names {
				r := w.event(id, i)
				r.Value = noise(i*webhooks+j, 500) // a fetch brings some hundreds
				records = append(records, r)
			}
			w.produce(records...)
		}
		a := w.start("a")
		a.owns(0)
		most, ahead := 0, int64(0)
		w.until("all are sent", func() bool {
			a.look(0, func(n *number) {
				most = max(most, n.flow.lanes.records)
				ahead = max(ahead, n.streams[w.topo.Events()].ahead.Load())
			})
			return len(w.receiver.Requests()) == webhooks*each
		})
		if most > lanesRecords+takeChunk || most < lanesRecords*5/6 {
			t.Errorf("%d were in lanes, want nearly %d and not much more", most, lanesRecords)
		}
		if ahead == 0 || ahead > aheadLimit+2*fetchBytes/500 {
			t.Errorf("%d were fetched ahead", ahead)
		}
		a.quiesce()
		for _, id := range names {
			mustEqual(t, "sent", ids(w.receiver.Of(id)), eventIDs(id, 0, each))
			if got := len(w.parked(id)); got > 0 {
				t.Errorf("%s: %d were parked, of a backlog that is spread evenly", id, got)
			}
		}
		a.look(0, func(n *number) {
			if n.flow.lanes != (amount{}) {
				t.Errorf("lanes hold %+v, want nothing", n.flow.lanes)
			}
		})
	})
}

// Lanes that are full of events that wait for slow answers do not keep the others from being read for long.
func TestFullLanesAreShed(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		for _, id := range []string{"s1", "s2", "s3", "s4"} {
			w.webhook(id)
			w.receiver.Answer(id, slowFirst(25*time.Second))
			w.send(id, 0, laneLimit-50)
		}
		w.webhook("quick")
		w.send("quick", 0, 1)
		began := time.Now()
		a := w.start("a")
		a.owns(0)
		w.until("the quick one is delivered", func() bool { return len(w.receiver.Of("quick")) == 1 })
		if took := time.Since(began); took > shedSlowAfter+time.Second {
			t.Errorf("the quick one was sent after %s", took)
		}
		w.until("all are sent", func() bool { return len(w.receiver.Requests()) == 4*(laneLimit-50)+1 })
		for _, id := range []string{"s1", "s2", "s3", "s4"} {
			mustEqual(t, "sent", ids(w.receiver.Of(id)), eventIDs(id, 0, laneLimit-50))
		}
	})
}

// Room is made with hysteresis: what was too much must fall by a sixth.
func TestHysteresis(t *testing.T) {
	n := newNumber(testDispatcher(t), 0, 1, "m", nil)
	n.out.trackers = map[string]*tracker.Tracker{}
	for _, topic := range n.d.topics {
		n.out.trackers[topic] = tracker.New(0, tracker.Set{})
	}
	events, retry, commands := n.streams[n.d.topo.Events()], n.streams[n.d.topo.Retry(2*time.Second)], n.streams[n.d.topo.Commands()]
	chunk := []*kgo.Record{{Offset: 0}}
	look := func(s *stream) bool {
		s.stopped = n.noRoom(time.Now(), s, chunk)
		return s.stopped == ""
	}
	for _, c := range []struct {
		lanes, retries amount
		events, retry  bool
	}{
		{amount{}, amount{}, true, true},
		{amount{records: lanesRecords}, amount{records: dueRecords}, true, true},
		{amount{records: lanesRecords + 1}, amount{records: dueRecords}, false, true},
		{amount{records: lanesRecords - lanesRecords/6 + 1}, amount{records: dueRecords + 1}, false, false},
		{amount{records: lanesRecords - lanesRecords/6}, amount{records: dueRecords - dueRecords/6 + 1}, true, false},
		{amount{bytes: lanesBytes + 1}, amount{records: dueRecords - dueRecords/6}, false, true},
		{amount{bytes: lanesBytes - lanesBytes/6 + 1}, amount{bytes: dueBytes + 1}, false, false},
		{amount{bytes: lanesBytes - lanesBytes/6}, amount{bytes: dueBytes - dueBytes/6}, true, true},
	} {
		n.flow.lanes, n.flow.retries = c.lanes, c.retries
		if e, r := look(events), look(retry); e != c.events || r != c.retry || !look(commands) {
			t.Errorf("lanes %+v, retries %+v: room for events %v, retries %v; want %v, %v", c.lanes, c.retries, e, r, c.events, c.retry)
		}
	}
	n.flow.retries, *n.flow.waiting[2*time.Second] = amount{}, amount{records: dueRecords + 1}
	if look(retry) || !look(n.streams[n.d.topo.Retry(4*time.Second)]) {
		t.Error("what waits in one tier is no bound of its own")
	}
	*n.flow.waiting[2*time.Second] = amount{}
	n.blocked = "something"
	if look(events) || look(retry) || !look(commands) {
		t.Error("a number that may not send takes in more, or no commands")
	}
}

// What is decided without a request (parked, dead) piles up no more than the rest
// while nothing can be committed.
func TestDecisionsDoNotPileUp(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		a.quiesce()
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.send("w", 0, 10)
		time.Sleep(10 * time.Second)
		w.send("w", 10, 4000)
		time.Sleep(10 * time.Second)
		if got := a.number(0).out.len(); got > 1000 {
			t.Errorf("%d records wait for a commit that has failed for 20s", got)
		}
		stuck.Remove()
		w.until("all are parked", func() bool { return len(w.parked("w")) == 4010 })
	})
}

// A slot is taken before the work: never more requests than there are slots, over all numbers, and every webhook gets its turn.
func TestSlotsBoundRequests(t *testing.T) {
	inWorld(t, 3, kafkatest.After(100*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		a := w.start("a", func(o *Options) { o.Config.MaxInFlight = 2 })
		a.owns(0, 1, 2)
		var names []string
		for i := range 20 {
			names = append(names, string(rune('a'+i)))
			w.webhook(names[i])
			w.send(names[i], 0, 1)
		}
		w.until("all have answered well", func() bool { return len(w.receiver.Requests()) == 20 })
		a.quiesce()
		began := time.Now()
		for _, id := range names {
			w.send(id, 1, 10)
		}
		w.until("all are delivered", func() bool { return len(w.receiver.Requests()) == 220 })
		a.quiesce()
		most := 0
		for _, r := range w.receiver.Requests() {
			running := 0
			for _, other := range w.receiver.Requests() {
				if !other.Start.After(r.Start) && other.End.After(r.Start) {
					running++
				}
			}
			most = max(most, running)
		}
		if most != 2 {
			t.Errorf("%d requests at once, want 2", most)
		}
		if a.d.slots.left() != 2 {
			t.Errorf("%d slots are free in the end, want 2", a.d.slots.left())
		}
		// 200 requests in 10s; each webhook's last one is among the last fifth.
		for _, id := range names {
			all := w.receiver.Of(id)
			if end := all[len(all)-1].Start.Sub(began); end < 5*time.Second {
				t.Errorf("%s had its last turn after %s: it was served before the others", id, end)
			}
		}
	})
}
