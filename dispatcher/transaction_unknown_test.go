package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// The answer to EndTxn(commit) is lost. The transaction was committed, or not, and
// in neither case may a chain be doubled or lost.
func TestAnswerToTheEndIsLost(t *testing.T) {
	for name, lose := range map[string]func(*wire, kmsg.Key, int) *loss{
		"committed":     (*wire).loseAnswers,
		"not committed": (*wire).loseRequests,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.FailFirst(2), func(t *testing.T, w *world) {
				line := &wire{}
				w.webhook("w", neverPauses)
				p := w.start("a", wired(line))
				p.owns(0)
				p.quiesce()

				first := lose(line, kmsg.EndTxn, 1)
				w.send("w", 0, 5)
				w.until("the end of a transaction is lost", func() bool { return line.hits(first) == 1 })
				// The client tries again by itself: that must not tell it either.
				again := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError})
				w.until("the client has given up", func() bool { return again.Hits() == 1 })
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
				time.Sleep(time.Minute)

				w.oneChain("w")
				w.counts("w", 15, 15, 10)
			})
		})
	}
}

// While an end is settled, readiness says what that meets.
func TestReadinessWhileSettling(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		refused := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn, kmsg.InitProducerID}, Err: kerr.TransactionalIDAuthorizationFailed, Count: -1, When: func(r kmsg.Request) bool {
			init, is := r.(*kmsg.InitProducerIDRequest)
			return !is || init.TransactionalID != nil
		}})
		w.send("w", 0, 5)
		time.Sleep(20 * time.Second)
		says(t, "ready", p.d.Ready(), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
		refused.Remove()
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
		w.oneChain("w")
	})
}
