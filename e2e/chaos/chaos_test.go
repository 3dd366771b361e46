package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
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
	w := newWorld(t, seed, length)
	traffic := w.traffic()
	for _, instance := range residents {
		w.slots[instance].start(w)
	}
	w.Membership(residents...)
	w.hurt(plan)
	traffic.stop()
	w.heal()
	w.prove(length)
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

	mu      sync.Mutex
	done    []done
	unasked []end // of processes that nobody asked for
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
		World: procs.New(t, cluster, 12, answers, length+2*draining), seed: seed,
		links: map[string]*link{}, slots: map[string]*slot{},
	}
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
	case killed, ended, stopped, joined:
		w.slots[f.target].hurt(w, f)
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

// rest waits, less when the test can't go on.
func (w *world) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.Ctx.Done():
	}
}
