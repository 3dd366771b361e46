package history

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Collect reads all that the topics hold, read committed, and the commits of the
// dispatchers' group. It waits for transactions that are open.
//
// Topics are read one after the other: stop the dispatchers first, or let them
// finish everything, else the topics are those of different moments.
func Collect(ctx context.Context, cl *kgo.Client, topo *topology.Topology, group string) (Topics, error) {
	t := Topics{Committed: map[Partition]int64{}, Deleted: map[string]time.Time{}}
	adm := kadm.NewClient(cl)
	drained, err := topology.Drained(ctx, adm, topo)
	if err != nil {
		return Topics{}, err
	}
	waiting := func(r *kgo.Record) error { return t.addWaiting(topo, r) }
	type source struct {
		topic string
		add   func(*kgo.Record) error
	}
	sources := []source{
		{topo.Events(), t.addEvent},
		{topo.Parked(), waiting},
		{topo.DLQ(), t.addDead},
		{topo.Attempts(), t.addAttempt},
		{topo.State(), t.addState},
		{topo.Commands(), t.addAct},
		{topo.Endpoints(), t.addDeleted},
	}
	for _, topic := range append(topo.Retries(), drained...) {
		sources = append(sources, source{topic, waiting})
	}
	for _, from := range sources {
		for p := range topo.Partitions() {
			if _, err := kafka.ReadAll(ctx, cl, from.topic, p, from.add); err != nil {
				return Topics{}, fmt.Errorf("collecting the history: %w", err)
			}
		}
	}
	commits, err := adm.FetchOffsets(ctx, group)
	if err != nil {
		return Topics{}, fmt.Errorf("reading the commits of group %s: %w", group, err)
	}
	commits.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			t.Committed[Partition{o.Topic, o.Partition}] = o.At
		}
	})
	return t, nil
}

// Acknowledged is an event that a producer's client has given its place.
func Acknowledged(r *kgo.Record) Sent {
	d, _ := record.FromEvent(r) // what is wrong with it is the dispatcher's to find
	s := Sent{Source: record.SourceOf(r), Webhook: d.Webhook, Value: HashOf(r.Value)}
	if !d.IDDerived {
		s.ID = d.ID
	}
	return s
}

func (t *Topics) addEvent(r *kgo.Record) error {
	d, _ := record.FromEvent(r) // an event that can't be delivered must end, too
	t.Events = append(t.Events, Event{
		Place: record.SourceOf(r), Written: r.Timestamp, Webhook: d.Webhook, ID: d.ID,
		Value: HashOf(d.Value), Headers: hashOfHeaders(d.Headers), PartitionKey: d.PartitionKey, Redrive: d.Redrive,
		Expiry: d.Expiry.Time, Moved: d.Moved,
	})
	return nil
}

func (t *Topics) addWaiting(topo *topology.Topology, r *kgo.Record) error {
	d, err := record.FromWaiting(r)
	if err != nil {
		return err
	}
	if len(d.Repaired) > 0 {
		return fmt.Errorf("headers %v are missing or can't be read", d.Repaired)
	}
	tier, _ := topo.TierOf(r.Topic)
	t.Waiting = append(t.Waiting, Waiting{
		Place: record.SourceOf(r), Tier: tier, Written: r.Timestamp, Webhook: d.Webhook, ID: d.ID, Source: d.Source,
		Attempts: d.Attempts, DueAt: d.DueAt.Time, Reason: d.Parked,
		Value: HashOf(d.Value), Headers: hashOfHeaders(d.Headers),
	})
	return nil
}

func (t *Topics) addDead(r *kgo.Record) error {
	l, err := record.ParseDeadLetter(r)
	if err != nil {
		return err
	}
	t.Dead = append(t.Dead, Dead{
		Place: l.Position, Written: r.Timestamp, Webhook: l.Webhook, ID: l.ID, Source: l.Source,
		Attempts: l.Attempts, Reason: l.Reason,
		Value: HashOf(l.Value), Headers: hashOfHeaders(l.Headers), Cut: l.HeadersDropped > 0,
	})
	return nil
}

func (t *Topics) addAttempt(r *kgo.Record) error {
	a, err := record.ParseAttempt(r.Value)
	if err != nil {
		return err
	}
	t.Attempts = append(t.Attempts, Attempt{
		Place: record.SourceOf(r), Written: r.Timestamp, Webhook: a.Webhook, ID: a.EventID,
		Source: record.Source{Topic: a.SourceTopic, Partition: a.SourcePartition, Offset: a.SourceOffset},
		Number: a.Attempt, Outcome: a.Outcome, Next: a.Next, Status: a.Status, Error: a.Error,
		Started: a.StartedAt.Time, Duration: millis(a.DurationMS), DueAt: a.DueAt.Time, NextDueAt: a.NextAttemptAt.Time,
		Dispatcher: a.Dispatcher,
	})
	return nil
}

func (t *Topics) addState(r *kgo.Record) error {
	if string(r.Key) == record.NumberKey {
		state, err := record.ParseNumberState(r.Value)
		t.Numbers = append(t.Numbers, Number{Place: record.SourceOf(r), Written: r.Timestamp, Holds: state.Holds})
		return err
	}
	s := State{Place: record.SourceOf(r), Written: r.Timestamp, Webhook: string(r.Key)}
	if r.Value == nil {
		s.Healthy = true
	} else {
		state, err := record.ParseState(r.Value)
		if err != nil {
			return err
		}
		s.Reasons, s.Streak, s.Parked, s.Held = state.PauseReasons, state.ConsecutiveFailures, state.Parked, state.Hold != nil
	}
	t.States = append(t.States, s)
	return nil
}

// addDeleted keeps when the last record of a webhook's configuration was written, where
// that is its end.
func (t *Topics) addDeleted(r *kgo.Record) error {
	delete(t.Deleted, string(r.Key))
	if r.Value == nil {
		t.Deleted[string(r.Key)] = r.Timestamp
	}
	return nil
}

func (t *Topics) addAct(r *kgo.Record) error {
	a := Act{Place: record.SourceOf(r), Written: r.Timestamp, Webhook: string(r.Key)}
	// Nonsense in the topic is left out here; that it did no harm shows elsewhere.
	if c, err := record.ParseCommand(r.Value); err == nil {
		a.ID, a.Action, a.Scope, a.Value = c.ID, c.Action, c.Scope, c.Value
		t.Acts = append(t.Acts, a)
	} else if result, err := record.ParseResult(r.Value); err == nil {
		a.ID, a.Result = result.ID, result.Result
		t.Acts = append(t.Acts, a)
	}
	return nil
}
