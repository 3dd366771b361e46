package vnet

import (
	"sync"
	"time"
)

// deadline is a point in time that can be moved while somebody waits for it.
type deadline struct {
	mu    sync.Mutex
	at    time.Time
	timer *time.Timer
	moved chan struct{} // closed and replaced when it passes or is moved
}

func newDeadline() *deadline { return &deadline{moved: make(chan struct{})} }

// set moves it. Whoever waits wakes and looks again: net/http takes a blocked
// read back by a deadline in the past.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	d.kick()
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.kick()
		})
	}
}

func (d *deadline) kick() {
	close(d.moved)
	d.moved = make(chan struct{})
}

// wait gives the channel to wait on. Take it before asking passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.moved
}

func (d *deadline) passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.at.IsZero() && !time.Now().Before(d.at)
}
