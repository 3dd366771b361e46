package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// tail reads what the dispatcher commits to the attempts, parked, dlq and state topics and has it told. It has a client of its own, since a
// reader that waits at the end of its partitions would hold up others of the same client.
type tail struct {
	client *kgo.Client
	topo   *topology.Topology
	cycle  time.Duration // of the dispatcher
	tell   *narrator
	flow   *flow
	log    *slog.Logger
	done   chan struct{}
	cancel context.CancelFunc
}

// tailWait is how long a broker holds a fetch that has nothing yet: it bounds how late a line is told when a fetch is not woken.
const tailWait = 100 * time.Millisecond

// startTail tells, and counts, what is committed from now on.
func startTail(ctx context.Context, s *session, tell *narrator, flow *flow, log *slog.Logger) (*tail, error) {
	states, err := s.control(nil).ListStates(ctx)
	if err != nil {
		return nil, err
	}
	for webhook, state := range states {
		tell.paused[webhook] = state.Status == record.Paused
	}
	topo := s.topo
	topics := []string{topo.Attempts(), topo.Parked(), topo.DLQ(), topo.State()}
	client, err := kgo.NewClient(append(slices.Clone(s.opts), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(tailWait))...)
	if err != nil {
		return nil, fmt.Errorf("making a client to follow the topics: %w", err)
	}
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("finding the end of the topics to follow: %w", err)
	}
	client.AddConsumePartitions(ends.KOffsets())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &tail{client: client, topo: topo, cycle: s.settings.Dispatcher.Cycle, tell: tell, flow: flow, log: log, done: make(chan struct{}), cancel: cancel}
	go t.run(ctx)
	return t, nil
}

func (t *tail) run(ctx context.Context) {
	defer close(t.done)
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, failed := range fetches.Errors() {
			t.log.Warn("following a topic", "topic", failed.Topic, "partition", failed.Partition, "error", failed.Err)
		}
		t.told(fetches.Records())
	}
}

// scene is one record's part of the story.
type scene struct {
	at   time.Time // when it happened, which is not when it was written
	rank int       // of what happened at the same time
	tell func()
}

// told tells records in the order in which things happened. One transaction's records come from several partitions: the attempt is told
// before the death and the pause that follow from it.
func (t *tail) told(records []*kgo.Record) {
	var scenes []scene
	for _, r := range records {
		s, err := t.scene(r)
		if err != nil {
			t.log.Warn("a record can't be told", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "error", err)
			continue
		}
		if s.tell != nil {
			scenes = append(scenes, s)
		}
	}
	slices.SortStableFunc(scenes, func(a, b scene) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank)) })
	for _, s := range scenes {
		s.tell()
	}
}

func (t *tail) scene(r *kgo.Record) (scene, error) {
	switch r.Topic {
	case t.topo.Attempts():
		a, err := record.ParseAttempt(r.Value)
		if a.StartedAt.IsZero() { // an end without a request
			a.StartedAt = record.At(r.Timestamp)
		}
		return scene{attemptEnd(a), 0, func() { t.tell.attempt(a); t.flow.attempt(a) }}, err
	case t.topo.Parked():
		d, err := record.FromWaiting(r)
		return scene{r.Timestamp, 1, func() { t.tell.parked(r.Timestamp, d); t.flow.parked(d) }}, err
	case t.topo.DLQ():
		l, err := record.ParseDeadLetter(r)
		return scene{l.DiedAt.Time, 2, func() { t.tell.deadLetter(l); t.flow.deadLetter(l) }}, err
	}
	webhook := string(r.Key)
	if webhook == record.NumberKey {
		return scene{}, nil
	}
	// A resume has no time of its own. It was decided at most a cycle before it was written, and before all that it let out.
	at := r.Timestamp.Add(-t.cycle)
	if r.Value == nil {
		return scene{at, 3, func() { t.tell.state(at, webhook, nil) }}, nil
	}
	s, err := record.ParseState(r.Value)
	if s.Status == record.Paused {
		at = s.PausedAt.Time
	}
	return scene{at, 3, func() { t.tell.state(at, webhook, &s) }}, err
}

// stop ends the telling.
func (t *tail) stop() {
	t.cancel()
	<-t.done
	t.client.Close()
}
