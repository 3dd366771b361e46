package producer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// Publish writes an event and returns when all in-sync replicas have it. Lost
// connections and moved leaders are retried until ctx or Options.Timeout ends.
//
// Events that are published to a webhook one after the other keep their order. So
// when the time of one is over while no broker is reached, those behind it in its
// partition are given up with it.
//
// An error is a *PublishError, which says whether the event may have been written
// all the same; Published has the event's ID with an error, too.
func (p *Producer) Publish(ctx context.Context, e Event) (Published, error) {
	r := p.PublishAll(ctx, []Event{e})[0]
	return r.Published, r.Err
}

// PublishAll publishes events at once, which takes a fraction of the time that one
// after the other does, and returns when each has its end. The results are in the
// order of the events, each with its own error: one that fails does not keep the
// others from being written. Those of a webhook keep their order.
func (p *Producer) PublishAll(ctx context.Context, events []Event) Results {
	type end struct {
		i int
		r Result
	}
	ends := make(chan end, len(events))
	for i, e := range events {
		p.PublishAsync(ctx, e, func(published Published, err error) { ends <- end{i, Result{published, err}} })
	}
	results := make(Results, len(events))
	for range events {
		e := <-ends
		results[e.i] = e.r
	}
	return results
}

// PublishAsync publishes an event, and calls done when that has ended, exactly
// once, as Publish would have returned. ctx is for the whole way of the event, not
// for this call. Flush and Close wait for what is on its way.
//
// PublishAsync itself waits only while 10,000 events or 64 MiB are on their way.
// done is called within it for an event that is refused, else by the goroutine that
// handles the brokers' answers: it must not wait for anything, least of all for
// another event.
func (p *Producer) PublishAsync(ctx context.Context, e Event, done func(Published, error)) {
	r, published, err := p.prepare(e)
	var way *pending
	if err == nil {
		way, err = p.begin(ctx, published, done)
	}
	if err != nil {
		done(published, &PublishError{ID: published.ID, Webhook: published.Webhook, Err: err})
		return
	}
	p.cl.Produce(way.ctx, r, func(r *kgo.Record, err error) {
		if err != nil {
			way.end(published, p.explain(way.ctx, err), maybeWritten(err))
			return
		}
		published := published
		published.Partition, published.Offset = r.Partition, r.Offset
		way.end(published, nil, false)
	})
}

// prepare makes and checks the record; where it goes is not known yet.
func (p *Producer) prepare(e Event) (*kgo.Record, Published, error) {
	in := e.internal()
	published := Published{ID: in.ID, Webhook: in.Webhook, Topic: p.topic, Partition: -1, Offset: -1}
	// The client's partitioner chooses the partition: it knows how many there are.
	r, err := record.NewEventRecord(p.topic, 0, in)
	if invalid, ok := errors.AsType[*record.InvalidError](err); ok {
		return nil, published, fmt.Errorf("%w: %s", ErrInvalid, invalid.Problem)
	}
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
