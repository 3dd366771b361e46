package story

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

const (
	// firstStep and stepGrowth: the log is read in steps from its end backwards, so that the newest attempts of a long one are found without
	// reading it all; where few belong to the webhook, the steps soon are long enough to cost nothing beside the reading.
	firstStep  = 1_000
	stepGrowth = 8

	// followWait is how long a broker may hold a fetch that has nothing yet.
	followWait = 250 * time.Millisecond
)

// LogQuery picks attempts.
type LogQuery struct {
	Webhook string
	Failed  bool      // only what failed or died
	Since   time.Time // zero: as far back as the topic goes
	Limit   int       // the newest ones, at most this many
}

// Entry is one record of the attempt log.
type Entry struct {
	record.Attempt
	At  time.Time // when it started; of an end without a request, when it was written
	Raw []byte    // the record's value, with fields that this build doesn't know
}

// Log passes on the newest attempts that match, oldest first, and returns the offset to follow the log from. It stops at the first error of fn and
// returns it.
func (r *Reader) Log(ctx context.Context, q LogQuery, fn func(Entry) error) (next int64, err error) {
	entries, next, err := r.newest(ctx, q)
	if err != nil {
		return 0, fmt.Errorf("reading the attempts of %s: %w", q.Webhook, err)
	}
	for _, e := range entries {
		if err := fn(e); err != nil {
			return 0, err
		}
	}
	return next, nil
}

func (r *Reader) newest(ctx context.Context, q LogQuery) ([]Entry, int64, error) {
	topic, number := r.topo.Attempts(), r.topo.PartitionFor(q.Webhook)
	end, err := stableEnd(ctx, r.client, topic, number)
	if err != nil {
		return nil, 0, err
	}
	start, err := r.logStart(ctx, q, number)
	if err != nil {
		return nil, 0, err
	}
	var entries []Entry
	for high, step := end, int64(firstStep); high > start && len(entries) < q.Limit; step *= stepGrowth {
		low := max(start, high-step)
		older, err := r.logRange(ctx, q, low, high, q.Limit-len(entries))
		if err != nil {
			return nil, 0, err
		}
		entries = append(older, entries...)
		high = low
		r.progress(topic, number, end-high, end-start)
	}
	return entries, end, nil
}

func (r *Reader) logStart(ctx context.Context, q LogQuery, number int32) (int64, error) {
	if q.Since.IsZero() {
		return kafka.StartOffset(ctx, r.client, r.topo.Attempts(), number)
	}
	return kafka.OffsetAt(ctx, r.client, r.topo.Attempts(), number, q.Since)
}

// logRange are the last limit entries in [low, high).
func (r *Reader) logRange(ctx context.Context, q LogQuery, low, high int64, limit int) ([]Entry, error) {
	var kept []Entry
	reader := kafka.NewReader(r.client, r.topo.Attempts(), r.topo.PartitionFor(q.Webhook), low)
	for next := low; next < high; {
		batch, err := reader.Next(ctx, 0, fetchBytes)
		if err != nil {
			return nil, err
		}
		for _, rec := range batch.Records {
			if rec.Offset >= high {
				break
			}
			if e, ok := q.entry(rec); ok {
				kept = append(kept[max(0, len(kept)+1-limit):], e)
			}
		}
		next = batch.Next
	}
	return kept, nil
}

// Follow passes on what is written to the log from an offset on, until ctx ends, which is no error, or fn returns one. It needs a client that
// nothing else waits for.
func (r *Reader) Follow(ctx context.Context, q LogQuery, from int64, fn func(Entry) error) error {
	reader := kafka.NewReader(r.client, r.topo.Attempts(), r.topo.PartitionFor(q.Webhook), from)
	for {
		batch, err := reader.Next(ctx, followWait, fetchBytes)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is how following ends
		}
		if err != nil {
			return fmt.Errorf("following the attempts of %s: %w", q.Webhook, err)
		}
		for _, rec := range batch.Records {
			if e, ok := q.entry(rec); ok {
				if err := fn(e); err != nil {
					return err
				}
			}
		}
	}
}

// entry reads a record that matches. One that is no attempt was not written by a dispatcher, and is nobody's.
func (q LogQuery) entry(r *kgo.Record) (Entry, bool) {
	if string(r.Key) != q.Webhook {
		return Entry{}, false
	}
	a, err := record.ParseAttempt(r.Value)
	if err != nil || q.Failed && !slices.Contains([]record.Outcome{record.Failed, record.Dead}, a.Outcome) {
		return Entry{}, false
	}
	return Entry{Attempt: a, At: startOf(a, r), Raw: bytes.Clone(r.Value)}, true
}

// startOf is when an attempt started, or when an end without a request was written.
func startOf(a record.Attempt, r *kgo.Record) time.Time {
	if a.StartedAt.IsZero() {
		return r.Timestamp
	}
	return a.StartedAt.Time
}
