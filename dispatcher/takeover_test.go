package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// dieInTransaction kills a dispatcher when it is about to end its next transaction.
// The end gets lost with it.
func (p *process) dieInTransaction() (died <-chan struct{}) {
	gone := make(chan struct{})
	id := transactionalID(p.d.cfg.Group, p.d.instance)
	p.w.cluster.Fake.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if r.(*kmsg.EndTxnRequest).TransactionalID != id {
			return nil, nil, false
		}
		p.kill()
		close(gone)
		return nil, nil, true // without an answer
	})
	return gone
}

// A dispatcher dies for good inside a transaction. Its successor takes its
// transactional id, and need not wait for the transaction's timeout, 30 s: 10 s
// until the group gives its numbers away, and little more. What the dead one had in
// flight, and not committed, is sent again.
func TestTakeoverFromTheDead(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		a := w.start("a")
		a.owns(0)
		b := w.start("b")
		w.send("w", 0, 3)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 3 })
		a.quiesce()

		gone := a.dieInTransaction()
		w.send("w", 3, 3)
		<-gone
		died := time.Now()
		b.owns(0)
		if took := time.Since(died); took > 15*time.Second {
			t.Errorf("number 0 has started %s after its owner's death, want 15s at most", took)
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 6 })
		w.oneChain("w")
		if got := len(w.attempts("w")); got != 12 {
			t.Errorf("%d attempts on record, want 12", got)
		}
	})
}

// A restart of the dead one itself ends its transaction at once.
func TestRestartInsideATransaction(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		a := w.startQuietly("a") // a twin to those who come after, so long as it lives
		a.owns(0)
		a.quiesce()
		gone := a.dieInTransaction()
		w.send("w", 0, 3)
		<-gone
		died := time.Now()
		again := w.start("a", func(o *Options) { o.Kafka.Dial, o.Transport.Dial = w.cluster.Dial, w.cluster.Dial })
		again.owns(0)
		if took := time.Since(died); took > 3*time.Second {
			t.Errorf("number 0 has started again after %s, want 3s at most", took)
		}
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 3 })
		time.Sleep(time.Minute)
		w.oneChain("w")
	})
}

// Who is a member may be ending its last cycle: its transactional id is left alone. So is our own.
func TestTakeoverSparesTheLiving(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		webhooks := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		for _, id := range webhooks {
			w.send(id, 0, 1)
		}
		w.until("both are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 2 })
		b := w.start("b")
		number := moved(w, a, b)

		inits := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
		for _, p := range []*process{a, b} {
			for _, n := range []int32{0, 1} {
				// number's offsets still name a, as if it were held up by a's last cycle.
				if life := p.number(n); life != nil {
					if err := life.fencePredecessor(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if inits.Hits() != 0 {
			t.Error("a transactional id was taken from a living member")
		}
		a.kill()
		b.owns(0, 1)
		if err := b.number(number).fencePredecessor(t.Context()); err != nil {
			t.Error(err)
		}
		if inits.Hits() == 0 {
			t.Error("the dead one's id was not taken: this test shows nothing")
		}
	})
}
