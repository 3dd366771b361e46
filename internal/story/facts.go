package story

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// facts say which records of a number are done, as of one moment.
//
// They are read before the records. What was done at that moment has its consequence in the topics already, one transaction held both, so an event
// is never missed between two places: at worst it is seen in both, and the later one counts.
type facts struct {
	commits   map[string]commit
	parkedEnd int64 // what lies beyond it in parked was not decided when the state was read
	state     *record.State
	holds     []record.Hold

	tail  *stretch // of state, which is read on
	whole bool     // it has been read to its end
}

// commit is what the dispatchers' group has committed for one topic of the number.
type commit struct {
	at   int64 // -1: nothing
	done tracker.Set
}

func (c commit) isDone(offset int64) bool { return !tracker.New(c.at, c.done).Received(offset) }

func newFacts(r *Reader, number int32) *facts {
	return &facts{tail: newStretch(r.client, r.topo.State(), number, kafka.Earliest)}
}

func (f *facts) read(ctx context.Context, r *Reader, webhook string, topics []string) (err error) {
	number := r.topo.PartitionFor(webhook)
	// Parked records up to here are committed, and so is the state that was written with them.
	if f.parkedEnd, err = stableEnd(ctx, r.client, r.topo.Parked(), number); err != nil {
		return err
	}
	if f.commits, err = r.commits(ctx, number, topics); err != nil {
		return err
	}
	f.whole, err = f.tail.read(ctx, func(rec *kgo.Record) { f.note(rec, webhook) }, r.progress)
	return err
}

// note takes a record of state. One that can't be read says nothing here: its owner pauses the webhook over it.
func (f *facts) note(r *kgo.Record, webhook string) {
	switch string(r.Key) {
	case webhook:
		f.state = nil
		if s, err := record.ParseState(r.Value); r.Value != nil && err == nil {
			f.state = &s
		}
	case record.NumberKey:
		f.holds = nil
		if n, err := record.ParseNumberState(r.Value); r.Value != nil && err == nil {
			f.holds = n.Holds
		}
	}
}

// open: whether the record at a place has still to be dealt with.
func (f *facts) open(place record.Source, inParked bool) bool {
	if !inParked {
		c, known := f.commits[place.Topic]
		return !known || !c.isDone(place.Offset)
	}
	if place.Offset >= f.parkedEnd {
		return true
	}
	p := f.parkedPart()
	return p != nil && place.Offset >= p.From && !slices.Contains(p.Done, place.Offset)
}

// commits reads what the group has committed for a number, without waiting for transactions: the answer is as of the last one that ended.
func (r *Reader) commits(ctx context.Context, number int32, topics []string) (map[string]commit, error) {
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = r.group
	for _, topic := range topics {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, []int32{number}
		group.Topics = append(group.Topics, t)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(ctx, r.client)
	if err == nil && len(resp.Groups) != 1 {
		err = fmt.Errorf("the broker answered for %d groups", len(resp.Groups))
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	if errors.Is(err, kerr.GroupIDNotFound) { // no dispatcher has ever run, or not for long
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetching the offsets of group %s for number %d: %w", r.group, number, err)
	}
	found := map[string]commit{}
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("fetching the offset of group %s for %s/%d: %w", r.group, t.Topic, number, err)
			}
			c := commit{at: p.Offset}
			if p.Metadata != nil {
				// Metadata of somebody else, who has reset the offset: all from it on counts as not done, as it does for dispatchers.
				if _, done, err := tracker.Decode(*p.Metadata); err == nil {
					c.done = done
				}
			}
			found[t.Topic] = c
		}
	}
	return found, nil
}

// parkedPart is which part of parked is the webhook's; nil for none.
func (f *facts) parkedPart() *record.Parked {
	if f.state == nil {
		return nil
	}
	return f.state.Parked
}
