package dispatcher

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// isPatient: whether the patient client has its turn.
func (p *process) isPatient() bool {
	f := p.d.fetch
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cl == f.patient
}

// calm waits until the patient client's fetches wait for news.
func (p *process) calm() {
	p.w.t.Helper()
	p.w.until("the patient client has its turn", p.isPatient)
	time.Sleep(time.Minute)
}

// pause and release are what a full stream does, and one that was taken in.
func (p *process) pause(number int32, topic string) {
	s := p.number(number).streams[topic]
	s.ahead.Add(aheadLimit) // or the number resumes it in its next turn
	p.d.fetch.mu.Lock()
	defer p.d.fetch.mu.Unlock()
	p.d.fetch.pauseLocked(p.number(number), s)
}

func (p *process) release(number int32, topic string) {
	s := p.number(number).streams[topic]
	s.ahead.Add(-aheadLimit)
	p.d.fetch.release(p.number(number), s)
}

// latency is how long after a deed the webhook's next request is seen.
func (w *world) latency(webhook string, deed func()) time.Duration {
	w.t.Helper()
	requests, began := len(w.receiver.Of(webhook)), time.Now()
	deed()
	w.until("the request", func() bool { return len(w.receiver.Of(webhook)) > requests })
	return w.receiver.Of(webhook)[requests].Start.Sub(began)
}

// An idle dispatcher asks each broker once in five seconds, and misses nothing by it.
func TestIdleFetches(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		a.calm()
		var fetches atomic.Int64
		w.cluster.Fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.KeepControl()
			fetches.Add(1)
			return nil, nil, false
		})
		time.Sleep(time.Hour)
		if n, most := fetches.Load(), int64(len(w.cluster.Brokers))*int64(time.Hour/patientWait); n > most+10 {
			t.Errorf("%d fetches in an hour, want %d at the most", n, most)
		}
		if took := w.latency(ids[0], func() { w.send(ids[0], 0, 1) }); took > 50*time.Millisecond {
			t.Errorf("an event took %s", took)
		}
		w.change(ids[1], func(e *record.Endpoint) { e.MaxAttempts = 2 })
		time.Sleep(50 * time.Millisecond)
		a.look(1, func(n *number) {
			if e, _ := n.endpoints.get(ids[1]); e.config.MaxAttempts != 2 {
				t.Error("a change of the configuration has not come")
			}
		})
	})
}

// However long the patient client's fetches wait, a topic that is paused and resumed goes on at once, and so does a number that was added.
func TestPatienceDelaysNothing(t *testing.T) {
	const soon = quickWait + 50*time.Millisecond
	for _, pause := range []time.Duration{0, time.Second, 7 * time.Second, time.Minute} {
		inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
			ids := w.onEach(2)
			a := w.start("a")
			a.owns(0, 1)
			a.calm()
			a.pause(0, w.topo.Events())
			w.send(ids[0], 0, 1) // ends the fetch under way; the next one leaves the topic out
			time.Sleep(pause)
			if n := len(w.receiver.Of(ids[0])); n != 0 {
				t.Errorf("%d requests while paused for %s", n, pause)
			}
			if took := w.latency(ids[0], func() { a.release(0, w.topo.Events()) }); took > soon {
				t.Errorf("after a pause of %s it took %s", pause, took)
			}
		})
	}
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		a.calm()
		topics := map[string][]int32{}
		for _, topic := range a.d.topics {
			topics[topic] = []int32{0}
		}
		a.d.ownership.onLost(t.Context(), a.d.group, topics)
		time.Sleep(time.Second)
		if !a.isPatient() {
			t.Error("the loss of a number ends patience")
		}
		w.send(ids[0], 0, 1)
		if took := w.latency(ids[0], func() { a.d.ownership.onAssigned(t.Context(), a.d.group, topics) }); took > soon {
			t.Errorf("the first event of a number that was added took %s", took)
		}
	})
}

// A pause that lasts keeps the quick client's turn.
func TestNoPatienceWhilePaused(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		a.calm()
		a.pause(0, w.topo.Retry(2*time.Second))
		time.Sleep(time.Millisecond)
		for range 10 {
			if a.isPatient() {
				t.Fatal("the patient client has its turn while a topic is paused")
			}
			time.Sleep(quickFor / 3)
		}
		a.release(0, w.topo.Retry(2*time.Second))
		a.calm()
	})
}

// Whatever one client holds when its turn ends is fetched again, and nothing twice.
func TestTurnsLoseNothing(t *testing.T) {
	const events = 105 // 15 rounds of 7
	inWorld(t, 2, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		ids := w.onEach(2, neverPauses)
		a := w.start("a")
		a.owns(0, 1)
		turns, was := 0, a.isPatient()
		for i := range events {
			for p, id := range ids {
				w.send(id, i, 1)
				if i%7 == p {
					a.pause(int32(p), w.topo.Events())
				}
			}
			time.Sleep(time.Duration(i%11) * time.Second / 50)
			if i%7 == 6 {
				a.release(0, w.topo.Events())
				a.release(1, w.topo.Events())
			}
			if i%21 == 20 {
				a.calm()
			}
			if is := a.isPatient(); is != was {
				turns, was = turns+1, is
			}
		}
		for _, id := range ids {
			w.until("all are delivered", func() bool { return len(w.delivered(id)) == events })
		}
		a.quiesce()
		for _, id := range ids {
			w.counts(id, 2*events, 2*events, events)
			w.oneChain(id)
			firsts := []string{}
			for _, r := range w.receiver.Of(id) {
				if r.Attempt == 1 {
					firsts = append(firsts, r.EventID)
				}
			}
			mustEqual(t, "first attempts", firsts, eventIDs(id, 0, events))
		}
		a.d.fetch.mu.Lock()
		for p, s := range a.d.fetch.sinks {
			if next := s.next[w.topo.Events()]; next != events {
				t.Errorf("events-%d is fetched on from %d, of %d", p, next, events)
			}
		}
		a.d.fetch.mu.Unlock()
		if turns < 8 {
			t.Errorf("%d changes of turn, the test shows little", turns)
		}
	})
}

// Events that come while the turn changes are not kept waiting, the first time either.
func TestTurnsKeepNobodyWaiting(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		var sent []time.Time
		steady := func() {
			sent = append(sent, time.Now())
			w.send(ids[0], len(sent)-1, 1)
			time.Sleep(10 * time.Millisecond)
		}
		for range 3 {
			for !a.isPatient() {
				steady()
			}
			for range 100 {
				steady()
			}
			a.pause(1, w.topo.Events())
			for range 100 {
				steady()
			}
			a.release(1, w.topo.Events())
		}
		time.Sleep(2 * time.Second)
		requests := w.receiver.Of(ids[0])
		if len(requests) != len(sent) {
			t.Fatalf("%d requests, want %d", len(requests), len(sent))
		}
		for i, r := range requests {
			if took := r.Start.Sub(sent[i]); took > 50*time.Millisecond {
				t.Errorf("event %d took %s", i, took)
			}
		}
	})
}
