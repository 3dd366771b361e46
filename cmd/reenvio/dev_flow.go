package main

import (
	"slices"
	"sync"

	"github.com/reenvio/reenvio/internal/record"
)

// flow counts what the dispatcher commits, for the page of `reenvio dev`: from its start on, webhook by webhook, and the last of each kind.
//
// It is safe for concurrent use.
type flow struct {
	mu       sync.Mutex
	webhooks map[string]*flowCounts
	attempts []record.Attempt    // the last, newest first
	dead     []record.DeadLetter // likewise
}

// flowCounts are of one webhook.
type flowCounts struct {
	Delivered, Failed, Dead int
	waiting                 map[string]bool // events that wait for their next attempt
}

const (
	flowLast    = 12
	flowWaiting = 10_000 // of one webhook; beyond it, they are not counted
)

func newFlow() *flow { return &flow{webhooks: map[string]*flowCounts{}} }

func (f *flow) counts(webhook string) *flowCounts {
	c := f.webhooks[webhook]
	if c == nil {
		c = &flowCounts{waiting: map[string]bool{}}
		f.webhooks[webhook] = c
	}
	return c
}

func (f *flow) attempt(a record.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts(a.Webhook)
	delete(c.waiting, a.EventID)
	switch {
	case a.Outcome == record.Delivered:
		c.Delivered++
	case a.Attempt > 0:
		c.Failed++
	}
	if a.Next == record.NextRetry && len(c.waiting) < flowWaiting {
		c.waiting[a.EventID] = true
	}
	f.attempts = newest(f.attempts, a)
}

func (f *flow) parked(d *record.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.counts(d.Webhook).waiting, d.ID)
}

func (f *flow) deadLetter(l record.DeadLetter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts(l.Webhook)
	delete(c.waiting, l.ID)
	c.Dead++
	l.Value, l.Headers = nil, nil // only what the page shows is kept
	f.dead = newest(f.dead, l)
}

// newest puts one in front of the last ones.
func newest[T any](last []T, one T) []T {
	last = slices.Insert(last, 0, one)
	return last[:min(flowLast, len(last))]
}

// flowShown is a copy for the page.
type flowShown struct {
	webhooks map[string]webhookFlow
	attempts []record.Attempt
	dead     []record.DeadLetter
}

type webhookFlow struct{ Delivered, Failed, Dead, Waiting int }

func (f *flow) shown() flowShown {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := flowShown{webhooks: map[string]webhookFlow{}, attempts: slices.Clone(f.attempts), dead: slices.Clone(f.dead)}
	for id, c := range f.webhooks {
		s.webhooks[id] = webhookFlow{c.Delivered, c.Failed, c.Dead, len(c.waiting)}
	}
	return s
}
