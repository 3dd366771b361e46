package overview

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// overdueAfter: what was due less long ago may be done, in a transaction that is under way.
const overdueAfter = time.Second

// tier looks at one partition of a delay topic. Its records lie about in the order of their due times, so that what is read first is what
// is due first.
func (r *reader) tier(ctx context.Context, at place) (Tier, error) {
	t := r.emptyTier(at.topic)
	parts, _ := r.open(at)
	left, err := r.scan(ctx, at, parts, share(retriesBudget, len(r.retries)*int(r.topo.Partitions())), func(rec *kgo.Record) {
		d, _ := record.FromWaiting(rec) // what can't be read has a safe value: due at once
		t.add(r.now, at.number, d, rec.Timestamp)
	})
	if err != nil {
		return t, fmt.Errorf("reading %s/%d: %w", at.topic, at.number, err)
	}
	// What is beyond the last stable offset does not wait here yet: its transaction may still be aborted.
	for _, s := range left {
		if more := min(s.to, r.ends[at].stable) - s.from; more > 0 {
			t.Waiting += more
			t.WaitingIsBound = true
		}
	}
	return t, nil
}

func (r *reader) emptyTier(topic string) Tier {
	delay, _ := r.topo.TierOf(topic)
	return Tier{Tier: topology.TierName(delay), Topic: topic, Configured: slices.Contains(r.topo.Retries(), topic)}
}

func (t *Tier) add(now time.Time, number int32, d *record.Delivery, written time.Time) {
	t.Waiting++
	due := d.DueAt
	if due.IsZero() {
		due = record.At(written)
	}
	t.OldestAt = earlier(t.OldestAt, record.At(written))
	switch {
	case due.After(now):
		t.NextDueAt = earlier(t.NextDueAt, due)
	case now.Sub(due.Time) > overdueAfter:
		t.Overdue++
		if earlier(t.OverdueSince, due) == due {
			t.OverdueSince, t.OverdueNumber, t.OverdueWebhook = due, &number, d.Webhook
		}
	}
}

// merge adds the same tier of another number.
func (t *Tier) merge(o Tier) {
	t.Waiting += o.Waiting
	t.WaitingIsBound = t.WaitingIsBound || o.WaitingIsBound
	t.Overdue += o.Overdue
	t.NextDueAt = earlier(t.NextDueAt, o.NextDueAt)
	t.OldestAt = earlier(t.OldestAt, o.OldestAt)
	if o.Overdue > 0 && earlier(t.OverdueSince, o.OverdueSince) == o.OverdueSince {
		t.OverdueSince, t.OverdueNumber, t.OverdueWebhook, t.OverdueReason = o.OverdueSince, o.OverdueNumber, o.OverdueWebhook, o.OverdueReason
	}
}

// earlier is the earlier of two times; the zero time is none.
func earlier(a, b record.Time) record.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a.Time) {
		return b
	}
	return a
}
