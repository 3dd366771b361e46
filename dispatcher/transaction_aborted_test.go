package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// A transaction that fails takes nothing with it: its records are written again,
// once, and no request is made again.
func TestAbortedCycle(t *testing.T) {
	for name, fault := range map[string]kfake.Fault{
		// The rest of the batch is acknowledged: committing it would lose the retries.
		"a record is not written":    {Keys: []kmsg.Key{kmsg.Produce}, Topic: "retry-2s", Err: kerr.TopicAuthorizationFailed},
		"the group is not added":     {Keys: []kmsg.Key{kmsg.AddOffsetsToTxn}, Err: kerr.GroupAuthorizationFailed},
		"an offset is not committed": {Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: "events", Err: kerr.GroupAuthorizationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
				w.webhook("w", neverPauses)
				p := w.start("a")
				p.owns(0)
				p.quiesce()

				if fault.Topic != "" {
					fault.Topic = w.topo.Prefix() + fault.Topic
				}
				fault.Count = 3
				h := w.cluster.Fake.Fault(fault)
				w.send("w", 0, 5)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
				time.Sleep(time.Minute)

				if h.Hits() != 3 {
					t.Errorf("the fault was met %d times, want 3", h.Hits())
				}
				w.oneChain("w")
				w.counts("w", 10, 10, 5)
			})
		})
	}
}
