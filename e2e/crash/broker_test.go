package crash_test

import (
	"testing"
	"time"
)

// TestBrokerKill: the loss of a broker costs no dispatcher its membership, loses
// nothing, and has no request made again: there is no incident to explain one.
func TestBrokerKill(t *testing.T) {
	w := newWorld(t, failSome)
	webhooks := w.webhookOfEach()
	w.start("a")
	w.start("b")
	before := w.membership("a", "b")
	stop := w.stream(50*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	started := w.logged("number started")
	for i := range w.cluster.Brokers {
		w.cluster.KillBroker(t, i)
		killed := time.Now()
		w.delivering(before, killed)
		t.Logf("broker %d killed: each number has delivered and committed since, %s later", i, time.Since(killed).Round(time.Millisecond))
		w.cluster.StartBroker(t, i)
	}
	after := w.membership("a", "b")
	if after.generation != before.generation {
		t.Errorf("the group went from generation %d to %d", before.generation, after.generation)
	}
	for instance, m := range before.members {
		if id := after.members[instance].id; id != m.id {
			t.Errorf("dispatcher %s was the member %s, and is %s", instance, m.id, id)
		}
	}
	w.same(before, after)
	if n := w.logged("number lost"); n > 0 {
		t.Errorf("numbers were lost %d times", n)
	}
	if n := w.logged("number started") - started; n > 0 {
		t.Errorf("%d numbers began a new life", n)
	}
	stop()
	w.finish()
}

// delivering waits until each number has seen an attempt that was begun after
// since, by its owner, and is committed.
func (w *world) delivering(m membership, since time.Time) {
	w.t.Helper()
	for instance, x := range m.members {
		w.first(instance, since, x.numbers)
	}
}
