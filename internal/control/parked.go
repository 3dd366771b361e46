package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

const parkedBytes = 1 << 20

// EachParked calls fn with each parked event of a webhook, the oldest first, as far
// as its state tells of them. Events of a whole number share the topic, so passed
// tells how much of the part to look through is done, after each fetch.
func (c *Control) EachParked(ctx context.Context, id string, p record.Parked, fn func(*record.Delivery), passed func(done, all int64)) error {
	topic, number := c.topo.Parked(), c.topo.PartitionFor(id)
	end, err := kafka.HighWatermark(ctx, c.cl, topic, number)
	if err != nil {
		return fmt.Errorf("reading the parked events of %s: %w", id, err)
	}
	end = min(end, p.Last+1)
	reader := kafka.NewReader(c.cl, topic, number, p.From)
	for next := p.From; next < end; {
		batch, err := reader.Next(ctx, 0, parkedBytes)
		if err != nil {
			return fmt.Errorf("reading the parked events of %s: %w", id, err)
		}
		for _, r := range batch.Records {
			if string(r.Key) != id || r.Offset >= end || slices.Contains(p.Done, r.Offset) {
				continue
			}
			d, _ := record.FromWaiting(r) // what is wrong with it is the owner's to see
			fn(d)
		}
		if batch.Next == next {
			if err := pause(ctx, tailPause); err != nil {
				return err
			}
		}
		next = batch.Next
		passed(min(next, end)-p.From, end-p.From)
	}
	return nil
}
