package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
)

const (
	// A writer that died inside its transaction holds up those who read to the
	// end (a dispatcher that takes the number over, too) until another writer
	// fences it or this time has passed. A write takes about 100 ms.
	transactionTimeout = 10 * time.Second

	// Time for ending a transaction that failed when the caller's time is over.
	abortTimeout = 3 * time.Second
)

// againError says that an attempt failed in a way that starting again settles.
type againError struct{ err error }

func (e *againError) Error() string { return e.err.Error() }
func (e *againError) Unwrap() error { return e.err }

// swap is one change of one webhook over all its attempts.
type swap struct {
	c      *Control
	number int32
	id     string
	value  []byte
	expect int64

	// The offset of a record whose commit was not answered. The next attempt's
	// init settles that transaction, and the reading after it shows the record,
	// or not.
	unsettled int64
}

// try is one attempt: take the transactional id, read to the end, compare,
// write, commit.
func (s *swap) try(ctx context.Context) (int64, error) {
	topic := s.c.topo.Endpoints()
	writer, err := kgo.NewClient(append(slices.Clone(s.c.opts()),
		kgo.TransactionalID(topic+"-"+strconv.Itoa(int(s.number))),
		kgo.TransactionTimeout(transactionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Kafka may answer a produce soon after another transaction's end with
		// CONCURRENT_TRANSACTIONS; kgo tries again at the next metadata refresh.
		kgo.MetadataMinAge(100*time.Millisecond),
	)...)
	if err != nil {
		return Absent, fmt.Errorf("making a transactional client: %w", err)
	}
	defer writer.Close()

	if _, _, err := writer.ProducerID(ctx); err != nil {
		return Absent, s.failed("taking the transactional id", err)
	}
	if done, err := s.compare(ctx); done || err != nil {
		return s.unsettled, err
	}
	return s.write(ctx, writer)
}

// compare reads the partition. It is done when the record of an earlier attempt
// turns out to be committed.
func (s *swap) compare(ctx context.Context) (done bool, err error) {
	have := Absent
	err = s.c.read(ctx, s.c.topo.Endpoints(), s.number, func(r *kgo.Record) {
		if string(r.Key) != s.id {
			return
		}
		done = done || r.Offset == s.unsettled
		have = r.Offset
		if r.Value == nil {
			have = Absent
		}
	})
	if err == nil && !done && have != s.expect {
		err = ErrConflict
	}
	return done, err
}

func (s *swap) write(ctx context.Context, writer *kgo.Client) (int64, error) {
	if err := writer.BeginTransaction(); err != nil {
		return Absent, s.failed("beginning a transaction", err)
	}
	r := &kgo.Record{Topic: s.c.topo.Endpoints(), Partition: s.number, Key: []byte(s.id), Value: s.value}
	if err := produce(ctx, writer, r); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		// If this fails too, the next writer's init or the timeout ends it.
		_ = writer.EndTransaction(ctx, kgo.TryAbort)
		return Absent, s.failed("writing to "+r.Topic, err)
	}
	// Cutting a commit short would leave most clients in a bad state; this one is
	// thrown away, and what became of the record is read.
	if err := writer.EndTransaction(ctx, kgo.TryCommit); err != nil {
		s.unsettled = r.Offset
		return Absent, &againError{fmt.Errorf("committing (the change may have been made; read the webhook again): %w", err)}
	}
	return r.Offset, nil
}

// failed wraps an error of a step before the commit, after which nothing of the
// attempt is left.
func (s *swap) failed(step string, err error) error {
	wrapped := fmt.Errorf("%s: %w", step, err)
	if kafka.IsFenced(err) || errors.Is(err, kerr.TransactionAbortable) || errors.Is(err, kerr.ConcurrentTransactions) {
		return &againError{wrapped}
	}
	return wrapped
}
