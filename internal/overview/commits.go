package overview

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/reenvio/reenvio/internal/tracker"
)

// place is one partition of a topic.
type place struct {
	topic  string
	number int32
}

// commit is what the group has committed of one partition.
type commit struct {
	at      int64 // -1: nothing
	done    tracker.Set
	cycle   tracker.CycleID // zero when the metadata is not a dispatcher's
	foreign error           // why the metadata could not be read
}

// commits reads all offsets of the group. It does not wait for open transactions: what they hold is not committed.
func (r *reader) commits(ctx context.Context) (map[place]commit, error) {
	var fetched kadm.OffsetResponses
	err := patiently(ctx, func() (err error) {
		fetched, err = r.admin.FetchOffsets(ctx, r.Group)
		return err
	})
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the committed offsets of the group %s: %w", r.Group, err)
	}
	found := map[place]commit{}
	for _, topic := range r.topics {
		for number, o := range fetched[topic] {
			if o.Err != nil {
				return nil, fmt.Errorf("reading the committed offset of %s/%d: %w", topic, number, o.Err)
			}
			if o.At < 0 {
				continue
			}
			c := commit{at: o.At}
			if c.cycle, c.done, err = tracker.Decode(o.Metadata); err != nil {
				c.cycle, c.done, c.foreign = tracker.CycleID{}, tracker.Set{}, err
			}
			found[place{topic, number}] = c
		}
	}
	return found, nil
}

// bounds are where a partition begins and ends.
type bounds struct {
	start  int64 // the first offset still there
	stable int64 // the first of the oldest open transaction, else end: what may be read
	end    int64 // the high watermark
}

// bounds are asked for after the commits, so that no committed offset lies beyond the end because time has passed.
func (r *reader) bounds(ctx context.Context, topics []string) (map[place]bounds, error) {
	all := map[place]bounds{}
	for _, ask := range []struct {
		list func(context.Context, ...string) (kadm.ListedOffsets, error)
		set  func(*bounds, int64)
	}{
		{r.admin.ListStartOffsets, func(b *bounds, at int64) { b.start = at }},
		{r.admin.ListCommittedOffsets, func(b *bounds, at int64) { b.stable = at }},
		{r.admin.ListEndOffsets, func(b *bounds, at int64) { b.end = at }},
	} {
		listed, err := ask.list(ctx, topics...)
		if err != nil {
			return nil, fmt.Errorf("reading where the topics begin and end: %w", err)
		}
		for _, topic := range topics {
			for number := range r.topo.Partitions() {
				o, ok := listed.Lookup(topic, number)
				if !ok {
					o.Err = kerr.UnknownTopicOrPartition
				}
				if o.Err != nil {
					return nil, fmt.Errorf("reading where %s/%d begins and ends: %w", topic, number, o.Err)
				}
				b := all[place{topic, number}]
				ask.set(&b, o.Offset)
				all[place{topic, number}] = b
			}
		}
	}
	return all, nil
}

// stretch is a part of a partition: [from, to).
type stretch struct{ from, to int64 }

func lengthOf(parts []stretch) (sum int64) {
	for _, s := range parts {
		sum += s.to - s.from
	}
	return sum
}

// open are the stretches of a partition, below its end, that no commit says are done; lost is how many offsets of them are gone, because
// retention took them before they were done.
func (r *reader) open(at place) (parts []stretch, lost int64) {
	b := r.ends[at]
	c, ok := r.committed[at]
	if !ok {
		return []stretch{{b.start, b.end}}, 0
	}
	for from, to := range c.done.Open(c.at, b.end) {
		if from < b.start {
			lost += min(to, b.start) - from
		}
		if to > b.start {
			parts = append(parts, stretch{max(from, b.start), to})
		}
	}
	return parts, lost
}
