package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// draining is how long it may take, when everything is healed, until every event is
// finished.
const draining = 4 * time.Minute

// TestChaos hurts a pipeline for REENVIO_TEST_MINUTES, by the plan of
// REENVIO_TEST_SEED.
func TestChaos(t *testing.T) {
	seed, length := parameters(t)
	plan := drawPlan(seed, length)
	t.Logf("make chaos MINUTES=%v SEED=%d: %d faults", length.Minutes(), seed, len(plan))
	phase := stopwatch(t)
	w := newWorld(t, seed, length)
	phase("the brokers started")
	traffic := w.traffic()
	for _, instance := range residents {
		w.slots[instance].start(w)
	}
	w.Membership(residents...)
	phase("the pipeline started")
	w.hurt(plan)
	traffic.stop()
	phase("all faults have ended")
	w.heal()
	phase("every event is finished")
	w.prove(length)
	phase("the history is proved")
}

// stopwatch tells how long each part of the test took.
func stopwatch(t *testing.T) (phase func(string)) {
	last := time.Now()
	return func(what string) {
		t.Logf("%s, after %s", what, time.Since(last).Round(100*time.Millisecond))
		last = time.Now()
	}
}

func parameters(t *testing.T) (seed uint64, length time.Duration) {
	t.Helper()
	seed, length = 1, time.Minute
	if s := os.Getenv("REENVIO_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("REENVIO_TEST_SEED: %v", err)
		}
	}
	if s := os.Getenv("REENVIO_TEST_MINUTES"); s != "" {
		minutes, err := strconv.ParseFloat(s, 64)
		if err != nil || minutes <= 0 {
			t.Fatalf("REENVIO_TEST_MINUTES is %q, want a number of minutes", s)
		}
		length = time.Duration(minutes * float64(time.Minute))
	}
	return seed, length
}

// world is a pipeline that is hurt.
type world struct {
	*procs.World
	seed  uint64
	began time.Time
	links map[string]*link // of each dispatcher
	slots map[string]*slot

	clear map[string]record.Endpoint // of the webhooks, as they were made

	healed atomic.Bool // nothing fails any more

	mu      sync.Mutex
	done    []done
	deeds   map[deed]int
	moves   map[string][]move // of webhooks' URLs
	unasked []end             // of processes that nobody asked for
}

// done is a fault that was done.
type done struct {
	fault
	from, to time.Time // to is zero while it goes on
}

func newWorld(t *testing.T, seed uint64, length time.Duration) *world {
	t.Helper()
	instances := append([]string{guest}, residents...)
	var paths []kafkatest.ApacheOption
	for _, instance := range instances {
		paths = append(paths, kafkatest.Path(instance))
	}
	cluster := kafkatest.Apache(t, paths...)
	w := &world{
		seed: seed, links: map[string]*link{}, slots: map[string]*slot{},
		clear: map[string]record.Endpoint{}, deeds: map[deed]int{}, moves: map[string][]move{},
	}
	w.World = procs.New(t, cluster, numbers, w.answer, length+2*draining)
	w.OnEnd = w.onEnd
	for _, instance := range instances {
		hops := map[string]string{}
		for _, hop := range cluster.Paths[instance] {
			hops[hop.Advertised] = hop.Broker
		}
		w.links[instance] = newLink(t, hops)
		w.slots[instance] = &slot{instance: instance}
	}
	return w
}

// hurt does the plan, and returns when all of it has ended.
func (w *world) hurt(plan []fault) {
	w.T.Helper()
	w.began = time.Now()
	var doing sync.WaitGroup
	lanes := map[string]chan fault{}
	for _, f := range plan {
		if lanes[f.lane()] == nil {
			lane := make(chan fault, len(plan))
			lanes[f.lane()] = lane
			doing.Go(func() {
				for f := range lane {
					w.do(f)
				}
			})
		}
		w.Pause(time.Until(w.began.Add(f.at)))
		lanes[f.lane()] <- f
	}
	for _, lane := range lanes {
		close(lane)
	}
	doing.Wait()
	w.Must(w.Ctx.Err(), fmt.Sprintf("doing %d faults", len(plan)))
}

// do does one fault, and notes when it was.
func (w *world) do(f fault) {
	w.mu.Lock()
	i := len(w.done)
	w.done = append(w.done, done{fault: f, from: time.Now()})
	w.mu.Unlock()
	switch f.kind {
	case killed, ended, stopped, joined, churned:
		w.slots[f.target].hurt(w, f)
	case coordinatorLost:
		if i := w.coordinator(); i >= 0 {
			w.Cluster.KillBroker(w.T, i)
			w.rest(f.length)
			w.Cluster.StartBroker(w.T, i)
		}
	case groupMoved:
		w.note(w.moveLeaders(func(topic string, _ int32) bool { return topic == groupsTopic }))
	case transactionsMoved:
		w.note(w.moveLeaders(func(topic string, _ int32) bool { return topic == transactionsTopic }))
	case leadersMoved:
		w.note(w.moveLeaders(func(topic string, p int32) bool {
			return strings.HasPrefix(topic, w.Topo.Prefix()) && p == int32(f.number)
		}))
	case brokerLoss:
		w.Cluster.KillBroker(w.T, f.number)
		w.rest(f.length)
		w.Cluster.StartBroker(w.T, f.number)
	case allLost:
		all := make([]int, len(w.Cluster.Brokers))
		for i := range all {
			all[i] = i
			w.Cluster.KillBroker(w.T, i)
		}
		w.rest(f.length)
		w.Cluster.StartBrokers(w.T, all...)
	case cutOff, slowed, narrowed:
		w.links[f.target].set(f.sky)
		w.rest(f.length)
		w.links[f.target].set(weather{})
	case broken:
		for range f.number {
			w.links[f.target].reset()
			w.rest(300 * time.Millisecond)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[i].to = time.Now()
}

// note tells of a fault that could not be done.
func (w *world) note(err error) {
	if err != nil {
		w.T.Logf("%v", err)
	}
}

// rest waits, less when the test can't go on.
func (w *world) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.Ctx.Done():
	}
}
