package procs

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// configs follows the topic of endpoints, of which compaction keeps the last ones only:
// what each webhook's configuration was, and until when.
type configs struct {
	mu   sync.Mutex
	next map[int32]int64
	all  map[string][]history.Change
}

func watchConfigs(w *World, cl *kgo.Client) *configs {
	c := &configs{next: map[int32]int64{}, all: map[string][]history.Change{}}
	go func() {
		for w.Ctx.Err() == nil {
			cl.PollFetches(w.Ctx).EachRecord(func(r *kgo.Record) {
				if err := c.add(r, time.Now()); err != nil {
					w.Fail(err)
				}
			})
		}
	}()
	return c
}

func (c *configs) add(r *kgo.Record, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Offset < c.next[r.Partition] {
		return nil
	}
	c.next[r.Partition] = r.Offset + 1
	id := string(r.Key)
	x := history.Change{Written: r.Timestamp, Seen: now, Deleted: r.Value == nil}
	if r.Value != nil {
		e, err := record.ParseEndpoint(r.Value)
		if err != nil {
			return fmt.Errorf("reading the configuration at %s: %w", record.SourceOf(r), err)
		}
		x.MaxAttempts, x.Ordering, x.MaxInFlight = e.MaxAttempts, e.Ordering, e.MaxInFlight
	}
	c.all[id] = append(c.all[id], x)
	return nil
}

// RulesNow are the webhooks' rules, with the changes so far.
func (w *World) RulesNow() map[string]history.Rules {
	w.configs.mu.Lock()
	defer w.configs.mu.Unlock()
	all := maps.Clone(w.Rules)
	for id, r := range all {
		if changes := w.configs.all[id]; len(changes) > 1 { // the first is how it was made
			r.Changes = changes[1:]
			all[id] = r
		}
	}
	return all
}
