package story

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// maxCopies bounds what is kept of an id that a producer uses again and again. The newest are kept.
const maxCopies = 100

// book gathers what belongs to one event, from records in any order.
type book struct {
	topo        *topology.Topology
	webhook, id string
	copies      map[record.Source]*Copy
	floor       int64 // copies below it are not kept
	dropped     int
}

func newBook(topo *topology.Topology, webhook, id string) *book {
	return &book{topo: topo, webhook: webhook, id: id, copies: map[record.Source]*Copy{}}
}

// add takes a record of any topic. What is no record of ours belongs to no event.
func (b *book) add(r *kgo.Record) {
	if string(r.Key) != b.webhook {
		return
	}
	switch r.Topic {
	case b.topo.Events():
		d, _ := record.FromEvent(r) // what can't be delivered has an id all the same
		b.place(r, d, Step{Kind: StepQueued})
	case b.topo.Attempts():
		if a, err := record.ParseAttempt(r.Value); err == nil {
			b.attempt(r, a)
		}
	case b.topo.DLQ():
		if l, err := record.ParseDeadLetter(r); err == nil {
			b.place(r, &l.Delivery, Step{Kind: StepDead, At: l.DiedAt, Reason: string(l.Reason), Message: l.Message, HTTPStatus: l.LastStatus, URLHost: l.URLHost})
		}
	case b.topo.Parked():
		d, _ := record.FromWaiting(r)
		b.place(r, d, Step{Kind: StepParked, Reason: string(d.Parked)})
	default:
		d, _ := record.FromWaiting(r)
		b.place(r, d, Step{Kind: StepWaiting, DueAt: d.DueAt})
	}
}

// place notes a record that holds the event itself.
func (b *book) place(r *kgo.Record, d *record.Delivery, s Step) {
	if d.ID != b.id {
		return
	}
	c := b.copy(d.Source)
	if c == nil {
		return
	}
	c.EventType, c.ProducedAt, c.Bytes = d.Type, d.ProducedAt, len(d.Value)
	c.MovedFrom, c.Redrive = d.Moved, d.Redrive
	if s.At.IsZero() {
		s.At = record.At(r.Timestamp)
	}
	s.Attempt = d.Attempts
	c.note(r, s)
}

func (b *book) attempt(r *kgo.Record, a record.Attempt) {
	if a.EventID != b.id {
		return
	}
	c := b.copy(record.Source{Topic: a.SourceTopic, Partition: a.SourcePartition, Offset: a.SourceOffset})
	if c == nil {
		return
	}
	c.EventType, c.ProducedAt = cmp.Or(c.EventType, a.EventType), a.ProducedAt
	s := Step{
		Kind: StepAttempt, At: record.At(startOf(a, r)), Attempt: a.Attempt, Outcome: a.Outcome, Next: a.Next,
		HTTPStatus: a.Status, Error: a.Error, URLHost: a.URLHost, NextAttemptAt: a.NextAttemptAt,
	}
	if a.Attempt > 0 {
		s.DurationMS = &a.DurationMS
	}
	c.note(r, s)
}

// copy finds or begins one; nil for one that is not kept.
func (b *book) copy(source record.Source) *Copy {
	if c := b.copies[source]; c != nil || source.Offset < b.floor {
		return c
	}
	b.copies[source] = &Copy{Source: source}
	if len(b.copies) > maxCopies {
		oldest := b.sorted()[0].Source
		delete(b.copies, oldest)
		b.dropped++
		b.floor = oldest.Offset + 1
	}
	return b.copies[source]
}

// note adds a step, or counts one more of a kind that was there already after as many attempts: of those the last is kept.
func (c *Copy) note(r *kgo.Record, s Step) {
	s.Place = record.SourceOf(r)
	i := slices.IndexFunc(c.Steps, func(t Step) bool { return t.Kind == s.Kind && t.Attempt == s.Attempt })
	if i < 0 {
		c.Steps = append(c.Steps, s)
		return
	}
	if c.Steps[i].Place == s.Place { // looked up by its place before it was met
		return
	}
	s.Times = max(1, c.Steps[i].Times) + 1
	if s.At.Before(c.Steps[i].At.Time) {
		c.Steps[i].Times = s.Times
		return
	}
	c.Steps[i] = s
}

// sorted are the copies in the order of the events topic. A source elsewhere stands for one that could not be read.
func (b *book) sorted() []*Copy {
	list := make([]*Copy, 0, len(b.copies))
	for _, c := range b.copies {
		list = append(list, c)
	}
	inEvents := func(c *Copy) int {
		if c.Source.Topic == b.topo.Events() {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b *Copy) int {
		return cmp.Or(cmp.Compare(inEvents(a), inEvents(b)), cmp.Compare(a.Source.Offset, b.Source.Offset))
	})
	return list
}
