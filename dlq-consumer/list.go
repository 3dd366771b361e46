package dlqconsumer

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

const (
	// firstStep and stepGrowth: a partition is read in steps from its end backwards, so that the newest letters of a long topic are
	// found without reading it all; with a filter that matches few, the steps soon are long enough to cost nothing beside the reading.
	firstStep  = 1_000
	stepGrowth = 8

	maxWait  = 250 * time.Millisecond
	maxBytes = 4 << 20
)

// place is a letter that a list will hold.
type place struct {
	at        time.Time // the record's timestamp: when it was written
	partition int32
	offset    int64
}

func (p place) compare(q place) int {
	return cmp.Or(p.at.Compare(q.at), cmp.Compare(p.partition, q.partition), cmp.Compare(p.offset, q.offset))
}

// List hands over the newest letters that match, at most limit, newest first. Within a partition the order is Kafka's, across partitions
// that of the records' timestamps. It stops at the first error of fn and returns it.
func (r *Reader) List(ctx context.Context, f Filter, limit int, fn func(record.DeadLetter) error) error {
	if err := f.Validate(); err != nil {
		return err
	}
	newest := &places{limit: limit}
	for _, partition := range f.partitions(r.topo) {
		if err := r.scan(ctx, partition, f, newest); err != nil {
			return fmt.Errorf("listing dead letters: %w", err)
		}
	}
	for _, p := range newest.sorted() {
		letter, err := r.At(ctx, p.partition, p.offset)
		if errors.Is(err, ErrNotFound) { // retention took it a moment ago
			continue
		}
		if err != nil {
			return err
		}
		if err := fn(letter); err != nil {
			return err
		}
	}
	return nil
}

// scan adds the places of a partition's newest letters, reading no further back than it must.
func (r *Reader) scan(ctx context.Context, partition int32, f Filter, newest *places) error {
	topic := r.topo.DLQ()
	start, err := kafka.StartOffset(ctx, r.client, topic, partition)
	if err != nil {
		return err
	}
	end, err := r.committedEnd(ctx, partition)
	if err != nil {
		return err
	}
	found := 0
	for high, step := end, int64(firstStep); high > start && found < newest.limit; step *= stepGrowth {
		low := max(start, high-step)
		n, err := r.scanRange(ctx, partition, low, high, f, newest)
		if err != nil {
			return err
		}
		found += n
		high = low
	}
	return nil
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

func (r *Reader) scanRange(ctx context.Context, partition int32, low, high int64, f Filter, newest *places) (found int, err error) {
	reader := kafka.NewReader(r.client, r.topo.DLQ(), partition, low)
	for next := low; next < high; {
		batch, err := reader.Next(ctx, maxWait, maxBytes)
		if err != nil {
			return 0, err
		}
		for _, rec := range batch.Records {
			if rec.Offset >= high {
				break
			}
			// What is no dead letter of ours is listed too, without a reason: in this topic it must not go unseen.
			if letter, _ := record.ParseDeadLetter(rec); f.match(&letter) {
				newest.add(place{rec.Timestamp, partition, rec.Offset})
				found++
			}
		}
		next = batch.Next
	}
	return found, nil
}

// At reads the letter at a place, or returns ErrNotFound.
func (r *Reader) At(ctx context.Context, partition int32, offset int64) (record.DeadLetter, error) {
	if partition < 0 || partition >= r.topo.Partitions() {
		return record.DeadLetter{}, fmt.Errorf("%w at %s/%d/%d: its partitions are 0 to %d", ErrNotFound, r.topo.DLQ(), partition, offset, r.topo.Partitions()-1)
	}
	end, err := kafka.HighWatermark(ctx, r.client, r.topo.DLQ(), partition)
	if err != nil {
		return record.DeadLetter{}, fmt.Errorf("reading a dead letter: %w", err)
	}
	if offset >= 0 && offset < end { // beyond the end, the reader would begin anew at the start
		batch, err := kafka.NewReader(r.client, r.topo.DLQ(), partition, offset).Next(ctx, maxWait, 1)
		if err != nil {
			return record.DeadLetter{}, fmt.Errorf("reading a dead letter: %w", err)
		}
		if len(batch.Records) > 0 && batch.Records[0].Offset == offset {
			letter, _ := record.ParseDeadLetter(batch.Records[0])
			return letter, nil
		}
	}
	return record.DeadLetter{}, fmt.Errorf("%w at %s/%d/%d", ErrNotFound, r.topo.DLQ(), partition, offset)
}

// places keeps the newest limit places: a heap with the oldest on top.
type places struct {
	list  []place
	limit int
}

func (p *places) add(found place) {
	switch {
	case len(p.list) < p.limit:
		heap.Push(p, found)
	case p.limit > 0 && p.list[0].compare(found) < 0:
		p.list[0] = found
		heap.Fix(p, 0)
	}
}

func (p *places) sorted() []place {
	return slices.SortedFunc(slices.Values(p.list), func(a, b place) int { return b.compare(a) })
}

// The methods of heap.Interface.
func (p *places) Len() int           { return len(p.list) }
func (p *places) Less(i, j int) bool { return p.list[i].compare(p.list[j]) < 0 }
func (p *places) Swap(i, j int)      { p.list[i], p.list[j] = p.list[j], p.list[i] }
func (p *places) Push(x any)         { p.list = append(p.list, x.(place)) }
func (p *places) Pop() any {
	last := p.list[len(p.list)-1]
	p.list = p.list[:len(p.list)-1]
	return last
}
