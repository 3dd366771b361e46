package control

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// Holds are the holds by hand that the owner of a number keeps, whichever of its
// webhooks they concern. One of a single webhook is in the state of that webhook.
func (c *Control) Holds(ctx context.Context, number int32) ([]record.Hold, error) {
	var last *kgo.Record
	err := c.read(ctx, c.topo.State(), number, func(r *kgo.Record) {
		if string(r.Key) == record.NumberKey {
			last = r
		}
	})
	if err != nil || last == nil || last.Value == nil {
		return nil, err
	}
	state, err := record.ParseNumberState(last.Value)
	if err != nil {
		return nil, fmt.Errorf("reading the holds of number %d (%s/%d/%d): %w", number, last.Topic, last.Partition, last.Offset, err)
	}
	return state.Holds, nil
}

// ListHolds are those of every number, by number.
func (c *Control) ListHolds(ctx context.Context) ([][]record.Hold, error) {
	all := make([][]record.Hold, c.topo.Partitions())
	return all, each(len(all), func(p int) (err error) {
		all[p], err = c.Holds(ctx, int32(p))
		return err
	})
}
