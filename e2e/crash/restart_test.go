package crash_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
)

// TestRestartAtOnce: a dispatcher that is killed and started again at once has its
// numbers back within 3 s of the kill, and the others keep theirs: static
// membership.
func TestRestartAtOnce(t *testing.T) {
	const (
		rounds = 6
		bound  = 3 * time.Second
	)
	w := newWorld(t, 6, failSome)
	webhooks := w.WebhookOfEach()
	running := map[string]*procs.Process{"a": w.Start("a"), "b": w.Start("b")}
	before := w.Membership("a", "b")
	stop := w.Stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	started := w.Logged("number started")
	var took []time.Duration
	for round := range rounds {
		victim := []string{"a", "b"}[round%2]
		w.Pause(rand.N(2 * time.Second)) // the group client's heartbeat: the embedded broker makes a rebalance of a restart, and waits for it
		killed := running[victim].Kill()
		gone := time.Now()
		running[victim] = w.Start(victim)
		for p, at := range w.first(victim, gone, before.Members[victim].Numbers) {
			took = append(took, at.Sub(killed))
			if at.Sub(killed) > bound {
				t.Errorf("round %d: number %d of dispatcher %s was delivered on again %s after the kill, want %s at most", round, p, victim, at.Sub(killed), bound)
			}
		}
		w.same(before, w.Membership("a", "b"))
	}
	slices.Sort(took)
	t.Logf("%d restarts, %d numbers: from the kill to the next attempt p50 %s, at most %s", rounds, len(took), took[len(took)/2], took[len(took)-1])
	if n := w.Logged("number started") - started; n != len(took) {
		t.Errorf("%d numbers began a new life, and %d were killed", n, len(took))
	}
	stop()
	w.finish()
}

// same fails the test when a dispatcher has other numbers than before, or, on
// Apache Kafka, when there was a rebalance.
func (w *world) same(before, after procs.Membership) {
	w.T.Helper()
	if w.Cluster.OnApache() && after.Generation != before.Generation {
		w.T.Errorf("the group went from generation %d to %d", before.Generation, after.Generation)
	}
	for instance, m := range before.Members {
		if got := after.Members[instance]; !slices.Equal(got.Numbers, m.Numbers) {
			w.T.Errorf("dispatcher %s had the numbers %v, and has %v", instance, m.Numbers, got.Numbers)
		}
	}
}
