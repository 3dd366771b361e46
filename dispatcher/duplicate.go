package dispatcher

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// A second copy of an event (its id, to the same webhook, of the same redrive) that
// comes to its turn within the window after the first was delivered is not delivered
// again. While the first is in flight it waits for the outcome. Each delivery is
// written to the delivered topic in the transaction that commits it, so that the next
// owner of the number remembers it too.

// id is what tells an event from others.
func (it *item) id() record.DeliveredID {
	return record.HashDelivered(it.Webhook, it.ID, it.Redrive)
}

// remember notes a delivery.
func (n *number) remember(now time.Time, it *item) {
	it.delivered = true
	if !n.recent.add(now, now, it.id()) {
		n.d.metrics.forgotten.Inc()
		if !n.recent.told {
			n.recent.told = true
			n.log.Warn("more events are delivered than are remembered: a second copy may be delivered again before dedup.window has passed",
				"window", n.recent.window.String(), "remembered", n.recent.limit)
		}
	}
}

// duplicate ends an event that was delivered already.
func (n *number) duplicate(now time.Time, it *item) bool {
	if n.recent.window == 0 || !n.recent.has(now, it.id()) {
		return false
	}
	a := n.attemptOf(it)
	a.Outcome, a.Next = record.Duplicate, record.NextNone
	n.d.metrics.duplicates.Inc()
	n.d.metrics.attempt(a, string(record.Duplicate))
	n.log.Info("duplicate, not delivered again", "webhook", it.Webhook, "event", it.ID, "source", it.Source.String())
	n.decide(now, it, n.attemptRecord(it, a))
	return true
}

// restoreRecent reads what was delivered within the window.
func (n *number) restoreRecent() error {
	if n.recent.window == 0 {
		return nil
	}
	now, topic := n.d.now(), n.d.topo.Delivered()
	from, err := kafka.OffsetAt(n.ctx, n.d.plain, topic, n.p, now.Add(-n.recent.window))
	if err == nil {
		_, err = kafka.ReadFrom(n.ctx, n.d.plain, topic, n.p, from, func(r *kgo.Record) error {
			ids, err := record.ParseDelivered(r.Value)
			if err != nil { // at worst a second copy is delivered
				n.log.Error("delivered ids can't be read", "offset", r.Offset, "error", err)
				return nil
			}
			for _, id := range ids {
				n.recent.add(now, r.Timestamp, id)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("reading what number %d has delivered: %w", n.p, err)
	}
	return nil
}
