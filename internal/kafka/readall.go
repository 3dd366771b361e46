package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// readAllBytes is what is on its way at a time. Compressed records take several times as much in memory, and a process reads dozens of partitions
	// side by side.
	readAllBytes = 256 << 10
	// readAllPause is how long ReadAll waits, here and not at the broker, for the end of somebody's open transaction.
	readAllPause = 50 * time.Millisecond
)

// ReadAll calls fn with every committed record from the first that is still there to the high watermark at the time of the call, and returns the
// offset to go on from. It waits for transactions that are open below that watermark: their markers land one by one, and what they decide belongs to
// what is read. An empty partition is done at once. An error of fn ends it.
func ReadAll(ctx context.Context, cl *kgo.Client, topic string, partition int32, fn func(*kgo.Record) error) (int64, error) {
	return ReadFrom(ctx, cl, topic, partition, 0, fn)
}

// ReadFrom is ReadAll from an offset on, or from the first that is still there.
func ReadFrom(ctx context.Context, cl *kgo.Client, topic string, partition int32, from int64, fn func(*kgo.Record) error) (int64, error) {
	end, err := HighWatermark(ctx, cl, topic, partition)
	if err != nil {
		return 0, err
	}
	next, err := StartOffset(ctx, cl, topic, partition)
	if err != nil {
		return 0, err
	}
	next = max(next, from)
	for r := NewReader(cl, topic, partition, next); next < end; {
		batch, err := r.Next(ctx, 0, readAllBytes)
		if err != nil {
			return next, err
		}
		for _, record := range batch.Records {
			if err := fn(record); err != nil {
				return record.Offset, fmt.Errorf("record %s/%d/%d: %w", topic, partition, record.Offset, err)
			}
		}
		if batch.Next == next {
			select {
			case <-ctx.Done():
				return next, fmt.Errorf("reading %s/%d from offset %d to %d: %w (a transaction is open from %d on)", topic, partition, next, end, ctx.Err(), batch.LastStable)
			case <-time.After(readAllPause):
			}
		}
		next = batch.Next
	}
	return next, nil
}
