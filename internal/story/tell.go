package story

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Tell tells the story of one event. Done records from before since are left aside; what waits still is found however old it is. An event of which
// there is nothing has no copies.
func (r *Reader) Tell(ctx context.Context, webhook, id string, since time.Time) (Story, error) {
	w, err := r.newWatch(ctx, webhook)
	if err == nil {
		w.book = newBook(r.topo, webhook, id)
		err = w.facts.read(ctx, r, webhook, w.queues())
	}
	if err == nil {
		err = w.beginAt(ctx, since)
	}
	var story Story
	if err == nil {
		story, err = w.tell(ctx)
	}
	if err != nil {
		return Story{}, fmt.Errorf("telling the story of event %s: %w", id, err)
	}
	return story, nil
}

// Watch follows one event that is yet to be written.
type Watch struct {
	r         *Reader
	webhook   string
	number    int32
	retries   []string
	facts     *facts
	stretches []*stretch
	book      *book
}

// Watch begins now: records that are there already are none of the event's.
func (r *Reader) Watch(ctx context.Context, webhook string) (*Watch, error) {
	w, err := r.newWatch(ctx, webhook)
	if err != nil {
		return nil, fmt.Errorf("preparing to follow an event of %s: %w", webhook, err)
	}
	for _, topic := range w.topics() {
		end, err := kafka.HighWatermark(ctx, r.client, topic, w.number)
		if err != nil {
			return nil, fmt.Errorf("preparing to follow an event of %s: %w", webhook, err)
		}
		w.stretches = append(w.stretches, newStretch(r.client, topic, w.number, end))
	}
	return w, nil
}

func (r *Reader) newWatch(ctx context.Context, webhook string) (*Watch, error) {
	number := r.topo.PartitionFor(webhook)
	drained, err := topology.Drained(ctx, kadm.NewClient(r.client), r.topo)
	if err != nil {
		return nil, err
	}
	return &Watch{r: r, webhook: webhook, number: number, retries: append(r.topo.Retries(), drained...), facts: newFacts(r, number)}, nil
}

// queues are the topics in which the group's commits say what is done.
func (w *Watch) queues() []string { return append([]string{w.r.topo.Events()}, w.retries...) }

// topics are those in which an event can be.
func (w *Watch) topics() []string {
	t := w.r.topo
	return append(w.queues(), t.Parked(), t.Attempts(), t.DLQ())
}

// beginAt starts each topic at a time, or at the first record that is not done when that is older.
func (w *Watch) beginAt(ctx context.Context, since time.Time) error {
	for _, topic := range w.topics() {
		from, err := kafka.OffsetAt(ctx, w.r.client, topic, w.number, since)
		if err != nil {
			return err
		}
		if c, ok := w.facts.commits[topic]; ok {
			from = min(from, max(c.at, 0)) // an offset that is no more there is taken for the first that is
		}
		if p := w.facts.parkedPart(); p != nil && topic == w.r.topo.Parked() {
			from = min(from, p.From)
		}
		w.stretches = append(w.stretches, newStretch(w.r.client, topic, w.number, from))
	}
	return nil
}

// Tell reads on to the end of every topic and tells what is known of the event by then. It may be called again and again, for one event.
func (w *Watch) Tell(ctx context.Context, id string) (Story, error) {
	if w.book == nil {
		w.book = newBook(w.r.topo, w.webhook, id)
	}
	err := w.facts.read(ctx, w.r, w.webhook, w.queues())
	var story Story
	if err == nil {
		story, err = w.tell(ctx)
	}
	if err != nil {
		return Story{}, fmt.Errorf("telling the story of event %s: %w", id, err)
	}
	return story, nil
}

// tell reads the records, after the facts.
func (w *Watch) tell(ctx context.Context) (Story, error) {
	s := Story{Webhook: w.webhook, EventID: w.book.id, Number: w.number, Copies: []Copy{}, State: w.facts.state, Holds: w.facts.holds}
	if !w.facts.whole {
		s.Incomplete = append(s.Incomplete, w.r.topo.State())
	}
	for _, stretch := range w.stretches {
		whole, err := stretch.read(ctx, w.book.add, w.r.progress)
		if err != nil {
			return Story{}, err
		}
		if !whole {
			s.Incomplete = append(s.Incomplete, stretch.topic)
		}
	}
	if err := w.findEvents(ctx); err != nil {
		return Story{}, err
	}
	for _, c := range w.book.sorted() {
		c.settle(func(s *Step) bool { return w.facts.open(s.Place, s.Kind == StepParked) })
		told := *c
		told.Steps = slices.Clone(c.Steps)
		s.Copies = append(s.Copies, told)
	}
	s.Earlier = w.book.dropped
	return s, nil
}

// findEvents looks up the event's own record where another one names its place, and it was not met: it is older than what was read.
func (w *Watch) findEvents(ctx context.Context) error {
	for _, c := range w.book.sorted() {
		if c.Last(StepQueued) != nil || c.Source.Topic != w.r.topo.Events() || c.Source.Partition != w.number {
			continue
		}
		batch, err := kafka.NewReader(w.r.client, c.Source.Topic, c.Source.Partition, c.Source.Offset).Next(ctx, 0, 1)
		if err != nil {
			return err
		}
		if len(batch.Records) > 0 && record.SourceOf(batch.Records[0]) == c.Source { // else retention has taken it
			w.book.add(batch.Records[0])
		}
	}
	return nil
}
