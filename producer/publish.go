package producer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// ErrInvalid says that an event could never be delivered, and was not sent:
// publishing it again is of no use. Test with errors.Is.
var ErrInvalid = errors.New("the event is invalid")

// Publish writes an event and returns when all in-sync replicas have it. Lost
// connections and moved leaders are retried until ctx ends, so give it a
// deadline.
//
// Events that are published to a webhook one after the other keep their order.
//
// When ctx has ended, the event may have been written all the same. Publish it
// again with the ID in Published, which is there with an error, too: by it the
// receiver recognises a second copy.
func (p *Producer) Publish(ctx context.Context, e Event) (Published, error) {
	r, published, err := p.prepare(e)
	if err == nil {
		err = p.write(ctx, r)
	}
	if err != nil {
		return published, fmt.Errorf("publishing event %q to webhook %q: %w", published.ID, published.Webhook, err)
	}
	published.Partition, published.Offset = r.Partition, r.Offset
	return published, nil
}

// prepare makes and checks the record; where it goes is not known yet.
func (p *Producer) prepare(e Event) (*kgo.Record, Published, error) {
	in := e.internal()
	published := Published{ID: in.ID, Webhook: in.Webhook, Topic: p.topic, Partition: -1, Offset: -1}
	// The client's partitioner chooses the partition: it knows how many there are.
	r, err := record.NewEventRecord(p.topic, 0, in)
	if err != nil {
		return nil, published, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if published.ID == "" { // it is in the envelope
		d, err := record.FromEvent(r)
		if err != nil {
			return nil, published, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		published.ID = d.ID
	}
	return r, published, nil
}

// write ends with ctx, unlike kgo, which holds on to a record that may have
// reached the broker for as long as it takes to know.
func (p *Producer) write(ctx context.Context, r *kgo.Record) error {
	done := make(chan error, 1)
	p.cl.Produce(ctx, r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return p.explain(ctx, err)
	case <-ctx.Done():
		return p.explain(ctx, ctx.Err())
	}
}

// explain adds what mends it.
func (p *Producer) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: it may have been written all the same", err)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("topic %s: %w: `reenvio topics apply` creates it", p.topic, err)
	case errors.Is(err, kerr.MessageTooLarge):
		return fmt.Errorf("topic %s: %w: `reenvio topics plan` shows whether its max.message.bytes is too low", p.topic, err)
	}
	return fmt.Errorf("topic %s: %w", p.topic, err)
}
