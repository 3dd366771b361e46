package dlqconsumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// compare notes for each candidate of a partition what has become of its event and its webhook. The events topic is read last: what is
// sent again while the others are read is seen.
func (r *Reader) compare(ctx context.Context, partition int32, c *candidates, run string, progress Progress) error {
	for _, read := range []func() error{
		func() error { return r.compareWebhooks(ctx, partition, c, progress) },
		func() error { return r.compareAttempts(ctx, partition, c, progress) },
		func() error { return r.compareEvents(ctx, partition, c, run, progress) },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// compareWebhooks looks whether they exist, and whether their events would wait.
func (r *Reader) compareWebhooks(ctx context.Context, partition int32, c *candidates, progress Progress) error {
	err := r.topicRecords(ctx, r.topo.Endpoints(), partition, 0, progress, func(rec *kgo.Record) {
		if w := c.webhooks[string(rec.Key)]; w != nil {
			e, _ := record.ParseEndpoint(rec.Value) // one that can't be read pauses its webhook: the event waits
			w.known, w.deleted, w.tenant, w.host = rec.Value != nil, rec.Value == nil, e.Tenant, e.URLHost
		}
	})
	if err != nil {
		return err
	}
	states := map[string][]byte{}
	err = r.topicRecords(ctx, r.topo.State(), partition, 0, progress, func(rec *kgo.Record) {
		if key := string(rec.Key); key == record.NumberKey || c.webhooks[key] != nil {
			states[key] = rec.Value
		}
	})
	if err != nil {
		return err
	}
	var number record.NumberState
	if value := states[record.NumberKey]; value != nil {
		if number, err = record.ParseNumberState(value); err != nil {
			return fmt.Errorf("reading the state of number %d: %w", partition, err)
		}
	}
	for id, w := range c.webhooks {
		w.waiting = slices.ContainsFunc(number.Holds, func(h record.Hold) bool { return h.Concerns(w.tenant, w.host) })
		if states[id] == nil {
			continue
		}
		state, err := record.ParseState(states[id])
		if err != nil {
			return fmt.Errorf("reading the state of %s: %w", id, err)
		}
		w.waiting = w.waiting || state.Status == record.Paused || state.Hold != nil
	}
	return nil
}

// compareAttempts reads the delivery log from the first of the deaths on.
//
// Only what comes behind a letter's own death counts, which is in the log too, in the order in which things happened (both are written
// in one transaction). Where retention has taken the death from the log, all that is left came behind it.
func (r *Reader) compareAttempts(ctx context.Context, partition int32, c *candidates, progress Progress) error {
	from, err := kafka.OffsetAt(ctx, r.client, r.topo.Attempts(), partition, c.firstWritten().Add(-skew))
	if err != nil {
		return err
	}
	return r.topicRecords(ctx, r.topo.Attempts(), partition, from, progress, func(rec *kgo.Record) {
		if c.webhooks[string(rec.Key)] == nil {
			return
		}
		a, err := record.ParseAttempt(rec.Value)
		if err != nil {
			return // somebody else's: it proves no delivery
		}
		l := c.letters[keyOf(a.Webhook, a.EventID)]
		if l == nil {
			return
		}
		source := int64(-1)
		if a.SourceTopic == r.topo.Events() {
			source = a.SourceOffset
		}
		switch a.Outcome {
		case record.Dead:
			if source == l.source {
				l.delivered, l.ended = false, -1
			}
		case record.Delivered, record.Duplicate: // a duplicate is of one that was delivered
			l.delivered = true
			l.ended = max(l.ended, source)
		case record.Filtered:
			l.ended = max(l.ended, source)
		case record.Failed: // it goes on
		}
	})
}

// compareEvents looks for records that sent a candidate's event again: they lie behind the event's own.
func (r *Reader) compareEvents(ctx context.Context, partition int32, c *candidates, run string, progress Progress) error {
	from := c.firstSource() + 1
	start, err := kafka.StartOffset(ctx, r.client, r.topo.Events(), partition)
	if err != nil {
		return err
	}
	var oldest time.Time // what the topic still holds
	err = r.topicRecords(ctx, r.topo.Events(), partition, max(from, start), progress, func(rec *kgo.Record) {
		if oldest.IsZero() {
			oldest = rec.Timestamp
		}
		if c.webhooks[string(rec.Key)] == nil {
			return
		}
		event, err := record.FromEvent(rec)
		if err != nil || event.Redrive == "" {
			return
		}
		if l := c.letters[keyOf(event.Webhook, event.ID)]; l != nil && rec.Offset > l.source {
			l.redriven = rec.Offset
			l.sentByRun = l.sentByRun || event.RedriveRun() == run
		}
	})
	for _, l := range c.letters {
		l.unknowable = l.source+1 < start && (oldest.IsZero() || l.written.Before(oldest))
	}
	return err
}
