package dlqconsumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

const (
	maxWait  = 250 * time.Millisecond
	maxBytes = 4 << 20

	// skew is by how much the clocks of those who write may differ, where a time leads to an offset. Reading a little more costs little.
	skew = 10 * time.Minute
)

// span is the part of a partition in which letters that match can lie: from start on, before end.
type span struct {
	partition  int32
	start, end int64
}

// spans are taken once, when the work begins: what comes later is not read, and what is sent again can't come round.
func (r *Reader) spans(ctx context.Context, f Filter) (all []span, total int64, err error) {
	for _, partition := range f.partitions(r.topo) {
		s := span{partition: partition}
		if s.start, err = r.start(ctx, partition, f); err != nil {
			return nil, 0, err
		}
		if s.end, err = r.committedEnd(ctx, partition); err != nil {
			return nil, 0, err
		}
		if s.end > s.start {
			all, total = append(all, s), total+s.end-s.start
		}
	}
	return all, total, nil
}

// start is the first offset at which a letter can match.
func (r *Reader) start(ctx context.Context, partition int32, f Filter) (int64, error) {
	if f.Since.IsZero() {
		return kafka.StartOffset(ctx, r.client, r.topo.DLQ(), partition)
	}
	return kafka.OffsetAt(ctx, r.client, r.topo.DLQ(), partition, f.Since.Add(-skew))
}

// committedEnd is the last stable offset: what lies beyond it is not decided yet. Every fetch tells it, from wherever it starts.
func (r *Reader) committedEnd(ctx context.Context, partition int32) (int64, error) {
	end, err := kafka.HighWatermark(ctx, r.client, r.topo.DLQ(), partition)
	if err != nil {
		return 0, err
	}
	batch, err := kafka.NewReader(r.client, r.topo.DLQ(), partition, end).Next(ctx, time.Millisecond, 1)
	if err != nil {
		return 0, err
	}
	return min(end, batch.LastStable), nil
}

// scan passes every letter of a span to fn, with the time at which it was written. What is no dead letter of ours is passed too, without
// a reason: in this topic it must not go unseen. After each batch, read is told the place reached. An error of fn ends it.
func (r *Reader) scan(ctx context.Context, s span, fn func(l *record.DeadLetter, written time.Time) error, read func(next int64)) error {
	reader := kafka.NewReader(r.client, r.topo.DLQ(), s.partition, s.start)
	for next := s.start; next < s.end; {
		batch, err := reader.Next(ctx, maxWait, maxBytes)
		if err != nil {
			return err
		}
		for _, rec := range batch.Records {
			if rec.Offset >= s.end {
				break
			}
			letter, _ := record.ParseDeadLetter(rec)
			if err := fn(&letter, rec.Timestamp); err != nil {
				return err
			}
		}
		next = batch.Next
		read(min(next, s.end))
	}
	return nil
}

const readingLetters = "reading dead letters"

// topicRecords passes every record of a partition of another topic from an offset on to fn, with progress called what.
func (r *Reader) topicRecords(ctx context.Context, topic string, partition int32, from int64, progress Progress, fn func(*kgo.Record)) error {
	end, err := kafka.HighWatermark(ctx, r.client, topic, partition)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("comparing with %s/%d", topic, partition)
	_, err = kafka.ReadFrom(ctx, r.client, topic, partition, from, func(rec *kgo.Record) error {
		fn(rec)
		progress(what, rec.Offset+1-from, max(end, rec.Offset+1)-from)
		return nil
	})
	return err
}
