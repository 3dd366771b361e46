package dispatcher

import (
	"slices"
	"sync"
)

// slots bounds the requests in flight, over all numbers. A slot is taken before
// the work begins, never after. A number that finds none waits its turn: slots
// that come free go to the waiting numbers in the order they asked, so that no
// number can starve another.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*number
}

func newSlots(n int) *slots { return &slots{free: n} }

// take takes a slot for n, or notes that n waits for one.
func (s *slots) take(n *number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return true
	}
	if !n.waitsForSlot {
		n.waitsForSlot = true
		s.waiting = append(s.waiting, n)
	}
	return false
}

// left is how many are free.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// give returns a slot, and wakes the number that has waited longest.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.wakeNext()
}

// passOn is called by a number that has started all it could: a slot that it was
// woken for and did not need goes to the next.
func (s *slots) passOn(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.waitsForSlot && s.free > 0 {
		s.wakeNext()
	}
}

// leave takes a number that ends out of the line.
func (s *slots) leave(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *number) bool { return w == n })
	if s.free > 0 {
		s.wakeNext()
	}
}

func (s *slots) wakeNext() {
	if len(s.waiting) == 0 {
		return
	}
	next := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	next.waitsForSlot = false
	next.inbox.wake()
}
