package procs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Attempts follows the topic of attempts: what has been committed of deliveries.
type Attempts struct {
	mu       sync.Mutex
	next     map[int32]int64 // of each partition: a client may read again when a leader moves
	all      []Attempt
	finished map[string]int // events, by webhook
	copies   map[string]int // second copies that ended as duplicates, by webhook
	changed  chan struct{}  // closed and replaced with each news
}

// Attempt is what is kept of one record.
type Attempt struct {
	Number         int32
	Dispatcher     string
	Started, Ended time.Time
}

// following are the options of a client that reads a topic from its start.
func following(topo *topology.Topology, topic string) []kgo.Opt {
	from := map[int32]kgo.Offset{}
	for p := range topo.Partitions() {
		from[p] = kgo.NewOffset().AtStart()
	}
	return []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(250 * time.Millisecond),
	}
}

func watchAttempts(w *World, cl *kgo.Client) *Attempts {
	a := &Attempts{next: map[int32]int64{}, finished: map[string]int{}, copies: map[string]int{}, changed: make(chan struct{})}
	go func() {
		for w.Ctx.Err() == nil {
			fetches := cl.PollFetches(w.Ctx)
			if fetches.NumRecords() == 0 {
				continue
			}
			if err := a.add(fetches.Records()); err != nil {
				w.Fail(err)
			}
		}
	}()
	return a
}

func (a *Attempts) add(records []*kgo.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		if r.Offset < a.next[r.Partition] {
			continue
		}
		a.next[r.Partition] = r.Offset + 1
		x, err := record.ParseAttempt(r.Value)
		if err != nil {
			return fmt.Errorf("reading the attempt at %s: %w", record.SourceOf(r), err)
		}
		a.all = append(a.all, Attempt{r.Partition, x.Dispatcher, x.StartedAt.Time, x.StartedAt.Time.Add(time.Duration(x.DurationMS) * time.Millisecond)})
		switch x.Outcome {
		case record.Failed: // will be tried again
		case record.Duplicate:
			a.copies[x.Webhook]++
		default:
			a.finished[x.Webhook]++
		}
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return nil
}

// Await waits until yes, which is asked with each news.
func (a *Attempts) Await(ctx context.Context, yes func() bool) error {
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if yes() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// All are those seen so far.
func (a *Attempts) All() []Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// Finished is how many events of a webhook are, and how many second copies of them.
func (a *Attempts) Finished(webhook string) (events, copies int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.finished[webhook], a.copies[webhook]
}
