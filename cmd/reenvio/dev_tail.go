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

// tail reads what the dispatcher commits to the attempts, dlq and state topics and has it told. It has a client of its own, since a
// reader that waits at the end of its partitions would hold up others of the same client.
type tail struct {
	client *kgo.Client
	topo   *topology.Topology
	tell   *narrator
	log    *slog.Logger
	done   chan struct{}
	cancel context.CancelFunc
}

// tailWait is how long a broker holds a fetch that has nothing yet: it bounds how late a line is told when a fetch is not woken.
const tailWait = 100 * time.Millisecond

// startTail tells what is committed from now on.
func startTail(ctx context.Context, s *session, tell *narrator, log *slog.Logger) (*tail, error) {
	states, err := s.control(nil).ListStates(ctx)
	if err != nil {
		return nil, err
	}
	for webhook, state := range states {
		tell.paused[webhook] = state.Status == record.Paused
	}
	topo := s.topo
	topics := []string{topo.Attempts(), topo.DLQ(), topo.State()}
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
	t := &tail{client: client, topo: topo, tell: tell, log: log, done: make(chan struct{}), cancel: cancel}
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
		records := fetches.Records()
		// One transaction's records come from several partitions: the attempt is told before the death and the pause that follow from it.
		slices.SortStableFunc(records, func(a, b *kgo.Record) int {
			return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(t.rank(a), t.rank(b)))
		})
		for _, r := range records {
			t.told(r)
		}
	}
}

func (t *tail) rank(r *kgo.Record) int {
	return slices.Index([]string{t.topo.Attempts(), t.topo.DLQ(), t.topo.State()}, r.Topic)
}

func (t *tail) told(r *kgo.Record) {
	var err error
	switch r.Topic {
	case t.topo.Attempts():
		var a record.Attempt
		if a, err = record.ParseAttempt(r.Value); err == nil {
			t.tell.attempt(a)
		}
	case t.topo.DLQ():
		var l record.DeadLetter
		if l, err = record.ParseDeadLetter(r); err == nil {
			t.tell.deadLetter(l)
		}
	case t.topo.State():
		if string(r.Key) == record.NumberKey {
			return
		}
		if r.Value == nil {
			t.tell.state(r.Timestamp, string(r.Key), nil)
			return
		}
		var s record.State
		if s, err = record.ParseState(r.Value); err == nil {
			t.tell.state(r.Timestamp, string(r.Key), &s)
		}
	}
	if err != nil {
		t.log.Warn("a record can't be told", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "error", err)
	}
}

// stop ends the telling.
func (t *tail) stop() {
	t.cancel()
	<-t.done
	t.client.Close()
}
