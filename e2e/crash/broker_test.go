package crash_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/e2e/procs"
)

// TestBrokerKill: the loss of a broker, and its return, cost no dispatcher its
// membership, lose nothing, and have no request made again: there is no incident
// to explain one. The broker is the one that leads the group.
func TestBrokerKill(t *testing.T) {
	w := newWorld(t, 6, failSome)
	webhooks := w.WebhookOfEach()
	w.Start("a")
	w.Start("b")
	before := w.Membership("a", "b")
	stop := w.Stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	started := w.Logged("number started")
	i := w.coordinator()
	w.Cluster.KillBroker(t, i)
	killed := time.Now()
	w.delivering(before, killed)
	t.Logf("broker %d killed, the group's coordinator: each number has delivered and committed since, %s later", i, time.Since(killed).Round(time.Millisecond))
	w.Cluster.StartBroker(t, i)
	w.delivering(before, time.Now())
	after := w.Membership("a", "b")
	if after.Generation != before.Generation {
		t.Errorf("the group went from generation %d to %d", before.Generation, after.Generation)
	}
	for instance, m := range before.Members {
		if id := after.Members[instance].ID; id != m.ID {
			t.Errorf("dispatcher %s was the member %s, and is %s", instance, m.ID, id)
		}
	}
	w.same(before, after)
	if n := w.Logged("number lost"); n > 0 {
		t.Errorf("numbers were lost %d times", n)
	}
	if n := w.Logged("number started") - started; n > 0 {
		t.Errorf("%d numbers began a new life", n)
	}
	stop()
	w.finish()
}

// TestTwoBrokersKill: with two of three brokers gone too few replicas are in sync for
// anything to be written. Requests stop, and go on when the brokers are back: nothing
// is lost, and no request made again.
func TestTwoBrokersKill(t *testing.T) {
	w := newWorld(t, 6, failSome)
	if !w.Cluster.OnApache() {
		t.Skip("the embedded broker has no replicas")
	}
	webhooks := w.WebhookOfEach()
	w.Start("a")
	w.Start("b")
	before := w.Membership("a", "b")
	stop := w.Stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	i := w.coordinator()
	gone := []int{i, (i + 1) % len(w.Cluster.Brokers)}
	for _, broker := range gone {
		w.Cluster.KillBroker(t, broker)
	}
	killed := time.Now()
	w.Pause(12 * time.Second)
	back := time.Now()
	w.silent(killed, back)
	w.Cluster.StartBrokers(t, gone...)
	w.delivering(before, back)
	t.Logf("each number has delivered and committed again %s after its brokers were started", time.Since(back).Round(time.Millisecond))
	if n := w.Logged("number lost") + w.Logged("requests cut"); n > 0 {
		t.Errorf("numbers were lost, or requests cut, %d times", n)
	}
	stop()
	w.finish()
}

// silent fails the test when requests began between a time at which nothing could be
// written any more, with what may still begin just then, and one at which it could
// again; or when no dispatcher has said so.
func (w *world) silent(since, until time.Time) {
	w.T.Helper()
	late := since.Add(2*time.Second + procs.Slack + time.Second) // max_uncommitted, and the begin of what was decided just then
	if !late.Before(until) {
		w.T.Fatalf("nothing could be written for %s, too short to tell", until.Sub(since))
	}
	for _, q := range w.Receiver.Requests() {
		if q.Start.After(late) && q.Start.Before(until) {
			w.T.Errorf("attempt %d of %s began %s after nothing could be written any more", q.Attempt, q.EventID, q.Start.Sub(since))
		}
	}
	if w.Logged("no request starts") == 0 {
		w.T.Error("no dispatcher has said that it starts nothing")
	}
}

// coordinator is the place of the broker that coordinates the group.
func (w *world) coordinator() int {
	w.T.Helper()
	found := kadm.NewClient(w.Client).FindGroupCoordinators(w.Ctx, w.Group)[w.Group]
	w.Must(found.Err, "finding the group's coordinator")
	for i, addr := range w.Cluster.Brokers {
		if addr == net.JoinHostPort(found.Host, fmt.Sprint(found.Port)) {
			return i
		}
	}
	w.T.Fatalf("the coordinator %s:%d is none of %v", found.Host, found.Port, w.Cluster.Brokers)
	return -1
}

// delivering waits until each number has seen an attempt that was begun after
// since, by its owner, and is committed.
func (w *world) delivering(m procs.Membership, since time.Time) {
	w.T.Helper()
	for instance, x := range m.Members {
		w.first(instance, since, x.Numbers)
	}
}
