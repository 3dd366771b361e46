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
	found := &places{limit: limit}
	for _, partition := range f.partitions(r.topo) {
		if err := r.newest(ctx, partition, f, found); err != nil {
			return fmt.Errorf("listing dead letters: %w", err)
		}
	}
	for _, p := range found.sorted() {
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

// newest adds the places of a partition's newest letters, reading no further back than it must.
func (r *Reader) newest(ctx context.Context, partition int32, f Filter, found *places) error {
	start, err := r.start(ctx, partition, f)
	if err != nil {
		return err
	}
	end, err := r.committedEnd(ctx, partition)
	if err != nil {
		return err
	}
	n := 0
	for high, step := end, int64(firstStep); high > start && n < found.limit; step *= stepGrowth {
		s := span{partition: partition, start: max(start, high-step), end: high}
		err := r.scan(ctx, s, func(l *record.DeadLetter, written time.Time) error {
			if f.match(l, written) {
				found.add(place{written, partition, l.Position.Offset})
				n++
			}
			return nil
		}, func(int64) {})
		if err != nil {
			return err
		}
		high = s.start
	}
	return nil
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
