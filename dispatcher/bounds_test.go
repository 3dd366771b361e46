package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Headers count in the bounds of bytes: a producer may put all of an event there.
func TestHeadersCountInBounds(t *testing.T) {
	heavy := &kgo.Record{Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "baggage", Value: make([]byte, 500_000)}}}
	s := &stream{}
	if !s.arrives([]*kgo.Record{heavy, heavy, heavy, heavy, heavy, heavy, heavy, heavy, heavy}) {
		t.Errorf("%d bytes have come, and may go on coming", s.aheadBytes.Load())
	}
	b := testOutbox()
	for range maxUncommittedBytes/500_000 + 1 {
		b.decide(time.Now(), decision{records: []*outgoing{{rec: heavy}}})
	}
	if b.full(time.Now(), time.Hour) == "" {
		t.Error("more than 16 MiB may wait to be committed")
	}
}

// A webhook that was forgotten is not kept for a retry of it that passed from one delay topic to the next.
func TestHopLeavesNothing(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(2 * time.Minute)} })
		w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 0))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it has failed", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.send("w", 1, 1)
		time.Sleep(time.Minute)
		a.look(0, func(n *number) {
			if len(n.webhooks) != 0 || n.due.Len() != 1 {
				t.Errorf("%d webhooks are in memory, want none; %d retries wait", len(n.webhooks), n.due.Len())
			}
		})
		w.until("the retry is delivered", func() bool { return len(w.delivered("w")) == 2 })
	})
}

// Tens of thousands of commands for one webhook wait behind one that takes its time, and those for others between them are
// done: the set of those fits the metadata of a commit all the same, or nothing of any number could be committed.
func TestCommandsFillTheWindow(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("slow", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		w.webhook("w")
		w.receiver.Answer("slow", hangs)
		a := w.start("a")
		a.owns(0)
		var records []*kgo.Record
		for i := range 28_000 {
			c := record.Command{ID: fmt.Sprint(i), Webhook: "slow", Action: record.ActionTest}
			if i%2 == 1 {
				c.Webhook, c.Action = "w", record.ActionResume
			}
			records = append(records, &kgo.Record{Topic: w.topo.Commands(), Partition: 0, Key: []byte(c.Webhook), Value: c.Marshal()})
		}
		for i := 0; i < len(records); i += 1000 {
			w.produce(records[i : i+1000]...)
		}
		time.Sleep(20 * time.Second)
		w.send("w", 0, 10)
		time.Sleep(5 * time.Second)
		if n := len(w.delivered("w")); n != 10 {
			t.Errorf("%d delivered, want 10; not ready: %v", n, a.d.Ready())
		}
		a.look(0, func(n *number) {
			if s := n.streams[w.topo.Commands()]; s.stopped != boundHalfDone {
				t.Errorf("the commands are stopped by %q: this test shows nothing", s.stopped)
			}
		})
	})
}

// A hold does not wait either behind what has waited until the webhook was known.
func TestHoldOvertakesForANewWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		_, readOn := w.startUnread("w")
		w.produceCommand(record.Command{ID: "test", Webhook: "w", Action: record.ActionTest})
		w.produceCommand(record.Command{ID: "pause", Webhook: "w", Action: record.ActionPause})
		w.produceCommand(record.Command{ID: "hold", Webhook: "w", Action: record.ActionHold, Scope: record.HoldWebhook, Value: "w"})
		time.Sleep(10 * time.Second)
		readOn()
		w.until("all are answered", func() bool { return len(w.results()) == 3 })
		mustEqual(t, "results", w.results(), []string{"hold done", "test refused", "pause done"})
	})
}
