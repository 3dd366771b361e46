package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// A poll that was under way when a number changed hands may hold records of the
// life before. A new life listens only when a poll has begun that knows of it, and
// what comes for a number that nobody here owns is dropped.
func TestPollOfTheLifeBefore(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		f := a.d.fetch
		polls := func() uint64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.polls
		}
		before := polls()
		began := time.Now()
		f.barrier()
		if polls() == before {
			t.Error("the barrier has let pass what the poll under way holds")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the barrier took %s: it has not stopped the poll", took)
		}

		n := a.number(0)
		f.remove(n)
		r := w.event("w", 0)
		f.route(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: w.topo.Events(), Partitions: []kgo.FetchPartition{{Partition: 0, Records: []*kgo.Record{r}}}}}}})
		time.Sleep(time.Second)
		w.counts("w", 0, 0, 0)
		if got := n.streams[w.topo.Events()].ahead.Load(); got != 0 {
			t.Errorf("%d records were handed to a number that does not listen", got)
		}
	})
}

// A topic that was paused for a life is fetched again for the next one of its number.
func TestPausesEndWithTheLife(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		a.d.fetch.mu.Lock()
		a.d.fetch.pauseLocked(a.number(0), a.number(0).streams[w.topo.Events()])
		a.d.fetch.mu.Unlock()
		topics := map[string][]int32{}
		for _, topic := range a.d.topics {
			topics[topic] = []int32{0}
		}
		a.d.ownership.onLost(t.Context(), a.d.group, topics)
		a.d.ownership.onAssigned(t.Context(), a.d.group, topics)
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
	})
}

// A number begins when all of its topics are here, not before.
func TestNumberBeginsWhole(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		some, rest := map[string][]int32{}, map[string][]int32{}
		for i, topic := range a.d.topics {
			if i%2 == 0 {
				some[topic] = []int32{0}
			} else {
				rest[topic] = []int32{0}
			}
		}
		o := a.d.ownership
		o.onLost(t.Context(), a.d.group, some)
		if a.number(0) != nil {
			t.Fatal("a number that has lost a topic goes on")
		}
		o.onLost(t.Context(), a.d.group, rest)
		o.onAssigned(t.Context(), a.d.group, some)
		if a.number(0) != nil {
			t.Fatal("a number has begun with some of its topics")
		}
		o.onAssigned(t.Context(), a.d.group, rest)
		a.owns(0)
	})
}
