package control

import (
	"context"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// StateTail reads the state of one webhook again and again, after the first time
// only what is new. It is for one goroutine.
type StateTail struct {
	c      *Control
	id     string
	reader *kafka.Reader
	next   int64
	state  record.State
	found  bool
}

// TailState begins at the start of the topic, with the first Read.
func (c *Control) TailState(id string) *StateTail {
	return &StateTail{c: c, id: id, reader: kafka.NewReader(c.cl, c.topo.State(), c.topo.PartitionFor(id), kafka.Earliest)}
}

// Read is GetState, as of now. Transactions that are open are waited for: the state
// that belongs to the result of a command is seen once the result is.
func (t *StateTail) Read(ctx context.Context) (record.State, bool, error) {
	end, err := kafka.HighWatermark(ctx, t.c.cl, t.c.topo.State(), t.c.topo.PartitionFor(t.id))
	if err != nil {
		return record.State{}, false, err
	}
	for t.next < end {
		batch, err := t.reader.Next(ctx, 0, tailBytes)
		if err != nil {
			return record.State{}, false, err
		}
		for _, r := range batch.Records {
			if string(r.Key) != t.id {
				continue
			}
			t.state, t.found = record.State{}, r.Value != nil
			if !t.found {
				continue
			}
			if t.state, err = state(r); err != nil {
				return record.State{}, false, err
			}
		}
		if batch.Next == t.next {
			if err := pause(ctx, tailPause); err != nil {
				return record.State{}, false, err
			}
		}
		t.next = batch.Next
	}
	return t.state, t.found, nil
}
