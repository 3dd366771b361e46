package crash_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestBrokerKill: the loss of a broker, and its return, cost no dispatcher its
// membership, lose nothing, and have no request made again: there is no incident
// to explain one. The broker is the one that leads the group.
func TestBrokerKill(t *testing.T) {
	w := newWorld(t, 6, failSome)
	webhooks := w.webhookOfEach()
	w.start("a")
	w.start("b")
	before := w.membership("a", "b")
	stop := w.stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	started := w.logged("number started")
	i := w.coordinator()
	w.cluster.KillBroker(t, i)
	killed := time.Now()
	w.delivering(before, killed)
	t.Logf("broker %d killed, the group's coordinator: each number has delivered and committed since, %s later", i, time.Since(killed).Round(time.Millisecond))
	w.cluster.StartBroker(t, i)
	w.delivering(before, time.Now())
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

// coordinator is the place of the broker that coordinates the group.
func (w *world) coordinator() int {
	w.t.Helper()
	found := kadm.NewClient(w.client).FindGroupCoordinators(w.ctx, w.group)[w.group]
	w.must(found.Err, "finding the group's coordinator")
	for i, addr := range w.cluster.Brokers {
		if addr == net.JoinHostPort(found.Host, fmt.Sprint(found.Port)) {
			return i
		}
	}
	w.t.Fatalf("the coordinator %s:%d is none of %v", found.Host, found.Port, w.cluster.Brokers)
	return -1
}

// delivering waits until each number has seen an attempt that was begun after
// since, by its owner, and is committed.
func (w *world) delivering(m membership, since time.Time) {
	w.t.Helper()
	for instance, x := range m.members {
		w.first(instance, since, x.numbers)
	}
}
