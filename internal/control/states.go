package control

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// GetState returns the state of one webhook. False: there is none on record,
// the webhook is active and has no streak.
func (c *Control) GetState(ctx context.Context, id string) (record.State, bool, error) {
	last, err := c.last(ctx, c.topo.State(), id)
	if err != nil || last == nil || last.Value == nil {
		return record.State{}, false, err
	}
	s, err := state(last)
	return s, err == nil, err
}

// ListStates returns the state of every webhook that has one on record, by id.
func (c *Control) ListStates(ctx context.Context) (map[string]record.State, error) {
	records, err := c.lastOfAll(ctx, c.topo.State())
	if err != nil {
		return nil, err
	}
	states := make(map[string]record.State, len(records))
	for id, r := range records {
		if id == record.NumberKey {
			continue // the owner's own notes
		}
		if states[id], err = state(r); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func state(r *kgo.Record) (record.State, error) {
	s, err := record.ParseState(r.Value)
	if err != nil {
		return s, fmt.Errorf("reading the state of %s (%s/%d/%d): %w", r.Key, r.Topic, r.Partition, r.Offset, err)
	}
	return s, nil
}
