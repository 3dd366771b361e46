package dlqconsumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

const (
	// roundBytes and roundRecords: a round is written and waited for, then the next is read. One round fills at most one batch of the
	// events topic, which takes 1 MiB.
	roundBytes   = record.MaxEventBytes
	roundRecords = 1_000

	// writePatience is how long a round may take: a failover of the partition's leader fits in.
	writePatience = time.Minute
)

// Sent is what a redrive has done.
type Sent struct {
	// Sent events are on all in-sync replicas. Gone are letters that retention took between the plan and the sending.
	Sent, Gone int64
	// Failed are records that Kafka refused for what they are. They come after Sent: nothing else is held up by them.
	Failed []Refused
}

// NewWriter makes the client that a redrive writes with: idempotent, and acknowledged by all in-sync replicas. opts are what it takes
// to reach the cluster.
func NewWriter(opts []kgo.Opt) (*kgo.Client, error) {
	compressor, err := kafka.NewCompressor(record.MaxEventBytes)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(slices.Clip(opts),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()), // and idempotent, which is kgo's default
		kgo.RecordDeliveryTimeout(writePatience),
		kgo.ProducerLinger(0),
		// kgo counts before compression, and what was compressed well by its producer has to fit again: the broker's limit is the one
		// that holds.
		kgo.ProducerBatchMaxBytes(64<<20),
		kgo.BrokerMaxWriteBytes(100<<20),
		kgo.WithCompressor(compressor),
	)...)
	if err != nil {
		return nil, fmt.Errorf("making a Kafka client to write with: %w", err)
	}
	return client, nil
}

// Redrive sends what is ready in a plan, in the order in which it died, partition by partition. It ends early, with an error, when ctx
// does or when Kafka can't be written to; the same run can be planned again then, and goes on.
//
// Between two rounds nothing is under way, so what Sent says is all that was sent; only a round that was not answered in time may be
// there without being counted. The next plan of the run finds it.
func (r *Reader) Redrive(ctx context.Context, p *Plan, writer *kgo.Client, progress Progress) (Sent, error) {
	s := &sending{run: p.Run, topic: r.topo.Events(), writer: writer}
	for _, partition := range slices.Sorted(maps.Keys(p.ready)) {
		err := r.chosen(ctx, partition, p.ready[partition], func(l *record.DeadLetter) error {
			if err := s.add(ctx, l, partition); err != nil {
				return err
			}
			progress("sending", s.Sent.Sent, p.Ready)
			return nil
		})
		if err == nil {
			err = s.flush(ctx)
		}
		if err != nil {
			return s.Sent, fmt.Errorf("sending dead events of partition %d again: %w", partition, err)
		}
		progress("sending", s.Sent.Sent, p.Ready)
	}
	s.Gone = p.Ready - s.Sent.Sent - s.failed()
	return s.Sent, nil
}

// chosen reads the letters at the offsets given, in order. One that retention has taken is left out.
func (r *Reader) chosen(ctx context.Context, partition int32, offsets []int64, fn func(*record.DeadLetter) error) error {
	last := offsets[len(offsets)-1]
	return r.scan(ctx, span{partition, offsets[0], last + 1}, func(l *record.DeadLetter, _ time.Time) error {
		for len(offsets) > 0 && offsets[0] < l.Position.Offset {
			offsets = offsets[1:]
		}
		if len(offsets) == 0 || offsets[0] > l.Position.Offset {
			return nil
		}
		return fn(l)
	}, func(int64) {})
}

// sending is a redrive under way.
type sending struct {
	Sent
	run, topic string
	writer     *kgo.Client

	round  []*kgo.Record
	places []record.Source // of their letters
	bytes  int
}

func (s *sending) failed() (n int64) {
	for _, f := range s.Failed {
		n += f.Count
	}
	return n
}

// add takes a letter's event into the round, after writing the one that it would make too large.
func (s *sending) add(ctx context.Context, l *record.DeadLetter, partition int32) error {
	// A letter lies in its webhook's partition number: the plan refuses others.
	rec, err := l.RedriveRecord(s.topic, partition, s.run)
	if err != nil {
		return err
	}
	size := record.Size(rec)
	if len(s.round) == roundRecords || len(s.round) > 0 && s.bytes+size > roundBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.round, s.places, s.bytes = append(s.round, rec), append(s.places, l.Position), s.bytes+size
	return nil
}

// flush writes the round and waits for it, also when ctx ends: a record that was handed over can't be called back, and whether it was
// written is worth knowing.
func (s *sending) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	errs := make([]error, len(s.round))
	var wg sync.WaitGroup
	wg.Add(len(s.round))
	for i, rec := range s.round {
		s.writer.Produce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) {
			errs[i] = err
			wg.Done()
		})
	}
	wg.Wait()
	var failed error
	for i, err := range errs {
		switch {
		case err == nil:
			s.Sent.Sent++
		case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord):
			s.Failed = countRefused(s.Failed, Unwritable, s.places[i].Partition, s.places[i].Offset)
		case failed == nil:
			failed = fmt.Errorf("writing to %s/%d: %w", s.topic, s.round[i].Partition, err)
		}
	}
	s.round, s.places, s.bytes = nil, nil, 0
	return failed
}
