package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// When the group client meets FENCED_INSTANCE_ID, the dispatcher ends and names the instance id; kgo would try for ever.
func TestFencedInstance(t *testing.T) {
	for name, fault := range map[string]kfake.Fault{
		"heartbeat": {Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true},
		"join":      {Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.startQuietly("a")
				a.owns(0)
				a.quiesce()
				fault.Err = kerr.FencedInstanceID
				fault.Count = -1
				w.cluster.Fake.Fault(fault)
				began := time.Now()
				w.send("w", 0, 1)
				if name == "join" {
					a.d.group.ForceRebalance()
				}
				if err := a.wait(); err == nil || !strings.Contains(err.Error(), `kafka.instance_id "a"`) {
					t.Errorf("it ended with %v", err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it ended after %s", took)
				}
			})
		})
	}
}

// Our own heartbeats and commits may meet it while kgo joins again, and the coordinator knows a member id that we don't
// know yet: that is no twin, and costs a cycle.
func TestFencedWhileJoining(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.FencedInstanceID, Count: 2})
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		w.oneChain("w")
	})
}

// A second dispatcher with the same id: the older one ends, the younger one goes on, and nothing is doubled.
func TestTwin(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		older := w.startQuietly("a")
		older.owns(0)
		w.send("w", 0, 50)
		w.until("some are delivered", func() bool { return len(w.delivered("w")) > 10 })
		younger := w.start("a")
		if err := older.wait(); err == nil || !strings.Contains(err.Error(), `kafka.instance_id "a"`) {
			t.Errorf("the older one ended with %v", err)
		}
		w.send("w", 50, 50)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 100 })
		time.Sleep(time.Minute)
		w.oneChain("w")
		if !younger.has(0) {
			t.Error("the younger one does not own the number")
		}
	})
}
