package dispatcher

import (
	"slices"
	"sync"
)

// slots bounds the requests in flight, over all numbers. A slot is taken before
// the work begins, never after. A number that finds none waits its turn: a slot
// that comes free is kept for the number that asked first, so that no number can
// starve another.
type slots struct {
	mu      sync.Mutex
	free    int // and kept for nobody: then nobody waits
	waiting []*number
}

func newSlots(n int) *slots { return &slots{free: n} }

// take takes a slot for n, or notes that n waits for one.
func (s *slots) take(n *number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n.keptSlot:
		n.keptSlot = false
		return true
	case s.free > 0:
		s.free--
		return true
	case !n.waitsForSlot:
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

// give returns a slot: to the number that has waited longest, which is woken.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveLocked()
}

// passOn is called by a number that has started all it could: a slot that was
// kept for it and that it did not need goes to the next.
func (s *slots) passOn(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passOnLocked(n)
}

// leave takes a number that starts nothing any more out of the line.
func (s *slots) leave(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.waitsForSlot = false
	s.waiting = slices.DeleteFunc(s.waiting, func(w *number) bool { return w == n })
	s.passOnLocked(n)
}

func (s *slots) passOnLocked(n *number) {
	if n.keptSlot {
		n.keptSlot = false
		s.giveLocked()
	}
}

func (s *slots) giveLocked() {
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	next := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	next.waitsForSlot, next.keptSlot = false, true
	next.inbox.wake()
}
