package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A pause that comes while 50 retries are due, before, among and after them: none starts while it
// lasts, and all are delivered after it.
func TestPauseWhileManyAreDue(t *testing.T) {
	for _, at := range []time.Duration{1900 * time.Millisecond, 2030 * time.Millisecond, 2100 * time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
				w.webhook("w", neverPauses, inOrder(record.OrderNone), atOnce(50))
				a := w.start("a")
				a.owns(0)
				a.quiesce()
				w.send("w", 0, 50)
				w.until("all have failed", func() bool { return len(w.receiver.Of("w")) == 50 })
				time.Sleep(time.Until(w.receiver.Of("w")[0].End.Add(at)))
				w.do("w", record.ActionPause)
				time.Sleep(100 * time.Millisecond) // those that were on their way
				before := len(w.receiver.Of("w"))
				time.Sleep(time.Minute)
				if n := len(w.receiver.Of("w")); n != before {
					t.Errorf("%d requests to a paused webhook", n-before)
				}
				w.do("w", record.ActionResume)
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 50 })
				a.quiesce()
				w.counts("w", 100, 100, 50)
				w.oneChain("w")
			})
		})
	}
}

// A resume while the endpoint is still dead: ten more failures pause it again, and nothing is lost.
func TestResumeOfADeadEndpoint(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 100)
		for round := 1; round <= 3; round++ {
			w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
			a.quiesce()
			if n := len(w.receiver.Of("w")); n != 10*round {
				t.Fatalf("%d requests until pause %d, want ten each", n, round)
			}
			if round < 3 {
				w.do("w", record.ActionResume)
			}
		}
		w.receiver.Answer("w", kafkatest.Always(200))
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 100 })
		w.oneChain("w")
	})
}

// Two people resume at once, and once more while the parked events go out.
func TestResumedTwiceAtOnce(t *testing.T) {
	inWorld(t, 1, kafkatest.After(5*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 300)
		w.until("all are parked", func() bool { return len(w.parked("w")) == 300 })
		resume := func(id string) *kgo.Record {
			c := record.Command{ID: id, Webhook: "w", Action: record.ActionResume}
			return &kgo.Record{Topic: w.topo.Commands(), Key: []byte("w"), Value: c.Marshal()}
		}
		w.produce(resume("one"), resume("two"))
		w.until("some are delivered", func() bool { return len(w.receiver.Of("w")) > 50 })
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 300 })
		a.quiesce()
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 300))
		w.oneChain("w")
	})
}
