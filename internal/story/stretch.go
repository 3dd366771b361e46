package story

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
)

const (
	fetchBytes = 4 << 20

	// openPause is the wait behind an open transaction. A dispatcher has one open for some milliseconds of every 100.
	openPause = 50 * time.Millisecond
	// openPatience is how long it is waited for altogether. One of a dispatcher that was killed stays open for up to 30 s, and a person wants to see
	// what there is.
	openPatience = 3 * time.Second
)

// stretch is a partition that is read on from where it was left.
type stretch struct {
	topic     string
	partition int32
	reader    *kafka.Reader
	next      int64
}

func newStretch(cl *kgo.Client, topic string, partition int32, from int64) *stretch {
	return &stretch{topic: topic, partition: partition, reader: kafka.NewReader(cl, topic, partition, from), next: from}
}

// read passes on what is committed up to the end as it is now. False: an open transaction has hidden the last part of it.
func (s *stretch) read(ctx context.Context, fn func(*kgo.Record), progress Progress) (whole bool, err error) {
	begin, end, waited := s.next, int64(-1), time.Duration(0)
	for {
		batch, err := s.reader.Next(ctx, 0, fetchBytes)
		if err != nil {
			return false, err
		}
		if end < 0 {
			end = batch.HighWatermark
			begin = max(begin, batch.LogStart)
		}
		for _, r := range batch.Records {
			fn(r)
		}
		stuck := batch.Next == s.next
		s.next = batch.Next
		progress(s.topic, s.partition, min(s.next, end)-begin, end-begin)
		switch {
		case s.next >= end:
			return true, nil
		case !stuck:
			continue
		case waited >= openPatience:
			return false, nil
		}
		select {
		case <-time.After(openPause):
			waited += openPause
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// stableEnd is where a partition's committed records end: what lies beyond it is not decided yet. Every fetch tells it, from wherever it starts.
func stableEnd(ctx context.Context, cl *kgo.Client, topic string, partition int32) (int64, error) {
	end, err := kafka.HighWatermark(ctx, cl, topic, partition)
	if err != nil {
		return 0, err
	}
	batch, err := kafka.NewReader(cl, topic, partition, end).Next(ctx, 0, 1)
	if err != nil {
		return 0, err
	}
	return min(end, batch.LastStable), nil
}
