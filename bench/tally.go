package bench

import (
	"sync"
	"time"
)

// tally counts the events that came, each once, and notes when those of one webhook did.
type tally struct {
	watched string

	mu          sync.Mutex
	seen        map[string]bool
	of          int // the watched one's
	first, last time.Time
	changed     chan struct{} // closed with each event, and made anew
}

func newTally(watched string) *tally {
	return &tally{watched: watched, seen: map[string]bool{}, changed: make(chan struct{})}
}

func (t *tally) add(webhook, event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[event] {
		return
	}
	t.seen[event] = true
	if webhook == t.watched {
		if t.of++; t.of == 1 {
			t.first = time.Now()
		}
		t.last = time.Now()
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits until enough says so, or the time has passed.
func (t *tally) await(patience time.Duration, enough func() bool) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		t.mu.Lock()
		is, changed := enough(), t.changed
		t.mu.Unlock()
		if is {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		}
	}
}
