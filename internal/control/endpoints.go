package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// Absent is the ETag of a webhook that does not exist (any more).
const Absent int64 = -1

// What reading and writing an endpoint can come to; test with errors.Is.
var (
	ErrNotFound = errors.New("there is no such webhook")
	ErrDeleted  = errors.New("the webhook was deleted")
	ErrConflict = errors.New("the webhook was changed by somebody else meanwhile: read it again and repeat the change")
)

// Stored is a webhook's configuration as it lies in Kafka, its sensitive values
// sealed.
type Stored struct {
	record.Endpoint
	// ETag is the offset of the record, the condition of the next write.
	ETag int64
	// Problem says why the record can't be read; of the Endpoint only the ID is
	// there then. One bad record must not hide the others.
	Problem error
}

// GetEndpoint returns the configuration of one webhook, sensitive values
// sealed, and its ETag for WriteEndpoint and DeleteEndpoint.
func (c *Control) GetEndpoint(ctx context.Context, id string) (record.Endpoint, int64, error) {
	if err := record.ValidWebhookID(id); err != nil {
		return record.Endpoint{}, Absent, err
	}
	last, err := c.last(ctx, c.topo.Endpoints(), id)
	switch {
	case err != nil:
		return record.Endpoint{}, Absent, err
	case last == nil:
		return record.Endpoint{}, Absent, fmt.Errorf("%w: %s", ErrNotFound, id)
	case last.Value == nil:
		return record.Endpoint{}, Absent, fmt.Errorf("%w: %s", ErrDeleted, id)
	}
	s := stored(last)
	return s.Endpoint, s.ETag, s.Problem
}

// ListEndpoints returns all webhooks, by id.
func (c *Control) ListEndpoints(ctx context.Context) ([]Stored, error) {
	records, err := c.lastOfAll(ctx, c.topo.Endpoints())
	if err != nil {
		return nil, err
	}
	list := make([]Stored, 0, len(records))
	for _, r := range records {
		list = append(list, stored(r))
	}
	slices.SortFunc(list, func(a, b Stored) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

func stored(r *kgo.Record) Stored {
	e, err := record.ParseEndpoint(r.Value)
	if err != nil {
		err = fmt.Errorf("reading the configuration of %s (%s/%d/%d): %w; its writer has to write it anew, or delete it (`reenvio webhooks delete %[1]s`) and create it again", r.Key, r.Topic, r.Partition, r.Offset, err)
		e = record.Endpoint{}
	}
	e.ID = string(r.Key) // the key decides whose it is
	return Stored{Endpoint: e, ETag: r.Offset, Problem: err}
}

// last is the newest committed record with the key id, nil if there is none.
func (c *Control) last(ctx context.Context, topic, id string) (last *kgo.Record, err error) {
	err = c.read(ctx, topic, c.topo.PartitionFor(id), func(r *kgo.Record) {
		if string(r.Key) == id {
			last = r
		}
	})
	return last, err
}

// lastOfAll is the newest committed record of each key of a topic; keys with a
// tombstone are left out.
func (c *Control) lastOfAll(ctx context.Context, topic string) (map[string]*kgo.Record, error) {
	parts := make([]map[string]*kgo.Record, c.topo.Partitions())
	err := each(len(parts), func(p int) error {
		parts[p] = make(map[string]*kgo.Record)
		return c.read(ctx, topic, int32(p), func(r *kgo.Record) {
			if r.Value == nil {
				delete(parts[p], string(r.Key))
			} else {
				parts[p][string(r.Key)] = r
			}
		})
	})
	all := make(map[string]*kgo.Record)
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all, err
}

// read passes all committed records of a partition to fn, up to the high
// watermark at the time of the call.
func (c *Control) read(ctx context.Context, topic string, partition int32, fn func(*kgo.Record)) error {
	_, err := kafka.ReadAll(ctx, c.cl, topic, partition, func(r *kgo.Record) error {
		fn(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading %s/%d: %w", topic, partition, err)
	}
	return nil
}

// each runs fn for 0 to n-1 at once and joins the errors.
func each(n int, fn func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
