package crash_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// attempts follows the topic of attempts: what has been committed of deliveries.
type attempts struct {
	mu       sync.Mutex
	next     map[int32]int64 // of each partition: a client may read again when a leader moves
	all      []attempt
	finished map[string]int // events, by webhook
	changed  chan struct{}  // closed and replaced with each news
}

type attempt struct {
	number     int32
	dispatcher string
	started    time.Time
}

// attemptsOf are the options of a client that reads it.
func attemptsOf(topo *topology.Topology) []kgo.Opt {
	from := map[int32]kgo.Offset{}
	for p := range topo.Partitions() {
		from[p] = kgo.NewOffset().AtStart()
	}
	return []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topo.Attempts(): from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(250 * time.Millisecond),
	}
}

func watchAttempts(w *world, cl *kgo.Client) *attempts {
	a := &attempts{next: map[int32]int64{}, finished: map[string]int{}, changed: make(chan struct{})}
	go func() {
		for w.ctx.Err() == nil {
			fetches := cl.PollFetches(w.ctx)
			if fetches.NumRecords() == 0 {
				continue
			}
			if err := a.add(fetches.Records()); err != nil {
				w.fail(err)
			}
		}
	}()
	return a
}

func (a *attempts) add(records []*kgo.Record) error {
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
		a.all = append(a.all, attempt{r.Partition, x.Dispatcher, x.StartedAt.Time})
		if x.Outcome != record.Failed {
			a.finished[x.Webhook]++
		}
	}
	close(a.changed)
	a.changed = make(chan struct{})
	return nil
}

// await waits until yes, which is asked with each news.
func (a *attempts) await(ctx context.Context, yes func() bool) error {
	for {
		a.mu.Lock()
		ok, changed := yes(), a.changed
		a.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// first waits until a dispatcher has made an attempt of each of the numbers, begun
// after since, and returns the begin of the first of each. An attempt is seen here
// when it has been committed.
func (w *world) first(dispatcher string, since time.Time, numbers []int32) map[int32]time.Time {
	w.t.Helper()
	first, seen := map[int32]time.Time{}, 0
	err := w.attempts.await(w.ctx, func() bool {
		for _, a := range w.attempts.all[seen:] {
			if at, ok := first[a.number]; a.dispatcher == dispatcher && a.started.After(since) && (!ok || a.started.Before(at)) {
				first[a.number] = a.started
			}
		}
		seen = len(w.attempts.all)
		for _, p := range numbers {
			if first[p].IsZero() {
				return false
			}
		}
		return true
	})
	w.must(err, fmt.Sprintf("waiting for dispatcher %s to deliver on %v: %d of %d seen", dispatcher, numbers, len(first), len(numbers)))
	return first
}
