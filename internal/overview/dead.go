package overview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// dead counts the dead letters of the last hour, the newest of each partition one by one.
func (r *reader) dead(ctx context.Context, o *Overview) error {
	topic := r.topo.DLQ()
	since, err := r.admin.ListOffsetsAfterMilli(ctx, r.now.Add(-time.Hour).UnixMilli(), topic)
	if err != nil {
		return fmt.Errorf("finding the dead letters of the last hour: %w", err)
	}
	limit := share(deadBudget, int(r.topo.Partitions()))
	counts := map[record.DeathReason]int64{}
	for number := range r.topo.Partitions() {
		from, ok := since.Lookup(topic, number)
		if !ok || from.Err != nil {
			return fmt.Errorf("finding the dead letters of the last hour in %s/%d: %w", topic, number, cmp.Or(from.Err, errLeftOut))
		}
		at := place{topic, number}
		to := r.ends[at].stable
		begin := min(from.Offset, to)
		first := max(begin, to-int64(limit.records))
		if skipped := first - begin; skipped > 0 {
			o.DeadLastHour += skipped
			o.DeadIsBound = true
		}
		left, err := r.scan(ctx, at, []stretch{{first, to}}, limit, func(rec *kgo.Record) {
			letter, _ := record.ParseDeadLetter(rec) // what is no letter of ours counts too, without a reason
			counts[letter.Reason]++
			o.DeadLastHour++
		})
		if err != nil {
			return fmt.Errorf("counting the dead letters of the last hour: %w", err)
		}
		if more := lengthOf(left); more > 0 {
			o.DeadLastHour += more
			o.DeadIsBound = true
		}
	}
	if o.DeadIsBound {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: more than %d records or %d MiB in a partition in the last hour; reasons are those of what was read, the sum is counted from offsets, with markers of transactions",
			topic, limit.records, limit.bytes>>20))
	}
	o.DeadByReason = []Dead{}
	for reason, n := range counts {
		o.DeadByReason = append(o.DeadByReason, Dead{reason, n})
	}
	slices.SortFunc(o.DeadByReason, func(a, b Dead) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason)) })
	return nil
}
