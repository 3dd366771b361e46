package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Earliest stands for the first offset that is still there when the first Next is called.
const Earliest int64 = -2

// Reader reads one partition, read committed, when it is asked to: it has no goroutine and no buffer, and nothing happens between two calls of Next.
// Its position is exact: it passes the markers of transactions, aborted records and what compaction has taken, so that a partition is read to the
// end when the position has reached the high watermark. Several readers can share one client; one reader must not be used by two goroutines at once.
//
// It is made for catching up, not for tailing. Kafka answers the requests of a connection one after the other, and all fetches of a client to one
// broker share a connection: a Next that waits at the end of its partition holds up every other reader of the client, and its group's fetches.
// Wait little (250 ms), or use a client of its own.
type Reader struct {
	cl        *kgo.Client
	topic     string
	partition int32
	next      int64
	reset     bool    // to be told with the next batch
	at        *leader // nil: to be looked up
	stale     bool    // what was looked up last led nowhere: cached metadata will not do
}

// Batch is the answer of one fetch. The records' keys, values and headers share the memory of that answer: copy what is kept for long.
type Batch struct {
	Records       []*kgo.Record // committed records, without control records; may be empty
	Next          int64         // the reader's position after this batch
	HighWatermark int64         // see [HighWatermark]
	LastStable    int64         // first offset of the oldest open transaction, else the high watermark: no reader gets beyond it
	LogStart      int64         // first offset that is still there
	Reset         bool          // the position was out of range (retention took it, or the log was cut short): this batch begins at the log's start
}

// NewReader makes a reader that begins at offset, or at [Earliest].
func NewReader(cl *kgo.Client, topic string, partition int32, offset int64) *Reader {
	return &Reader{cl: cl, topic: topic, partition: partition, next: offset}
}

// Next fetches from the position on. At the end, or behind an open transaction, it waits up to maxWait (0: not at all) for more, and then returns a
// batch without records. maxBytes bounds the answer, unless its first batch is larger by itself.
//
// Lost connections and moved leaders are retried for a minute. Then, or when ctx ends, the error names what was in the way; the position is kept, and
// the next call goes on from there.
func (r *Reader) Next(ctx context.Context, maxWait time.Duration, maxBytes int32) (Batch, error) {
	giveUp := time.Now().Add(retryTimeout)
	var before error // why the try before failed
	for try := 1; ; try++ {
		batch, err := r.fetch(ctx, maxWait, maxBytes)
		switch {
		case err == nil:
			r.next, r.reset = batch.Next, false
			return batch, nil
		case errors.Is(err, kerr.OffsetOutOfRange):
			r.next, r.reset = Earliest, true
		case ctx.Err() != nil:
			return Batch{}, r.failed(ended(ctx, err, before))
		case !passes(err) || time.Now().After(giveUp):
			return Batch{}, r.failed(err)
		}
		r.at, before = nil, err
		select {
		case <-ctx.Done():
			return Batch{}, r.failed(ended(ctx, err, before))
		case <-time.After(backoff(try)):
		}
	}
}

func (r *Reader) failed(err error) error {
	return fmt.Errorf("reading %s/%d from offset %d: %w", r.topic, r.partition, r.next, err)
}

// ended is the end of ctx, with what was in the way until then.
func ended(ctx context.Context, err, before error) error {
	if errors.Is(err, ctx.Err()) {
		err = before // that the request ended too says nothing
	}
	if err == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w, after: %w", ctx.Err(), err)
}

// passes reports whether trying again may help. Everything that is no answer of a broker may pass: connections (a dial that timed out looks like the
// end of a context, but is none of ours), lookups, and a broker that the client doesn't know yet, for which kgo has no error of its own.
func passes(err error) bool {
	if errors.Is(err, kgo.ErrClientClosed) {
		return false
	}
	answer, ok := errors.AsType[*kerr.Error](err)
	return !ok || answer.Retriable
}
