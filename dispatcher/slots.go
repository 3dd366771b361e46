package dispatcher

import "sync"

// slotClass is what kind of webhook takes a slot. Suspects hold one for up to
// their timeout, and use at most half of all; else 1,000 dead endpoints, of which no
// single one is greedy, would leave nothing for the rest.
type slotClass int

const (
	proven  slotClass = iota // its last attempt succeeded in under quickAnswer
	suspect                  // it has a streak, is slow, or was never tried
	slotClasses
)

// slots bounds the requests in flight, over all numbers. A slot is taken before
// the work begins, never after. A number that finds none waits its turn: a slot
// that comes free is kept for the number that asked first, so that no number can
// starve another.
type slots struct {
	mu      sync.Mutex
	size    int
	used    [slotClasses]int // in use, or kept
	numbers map[*number]*account
	waiting []claim // none of them may have what is free
}

// account is what one number has of the slots.
type account struct {
	used  [slotClasses]int
	waits [slotClasses]bool
	kept  [slotClasses]bool // one that came free is kept for it
}

type claim struct {
	n     *number
	class slotClass
}

func newSlots(n int) *slots { return &slots{size: n, numbers: map[*number]*account{}} }

// take takes a slot for n, or notes that n waits for one.
func (s *slots) take(n *number, class slotClass) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.numbers[n]
	if a == nil {
		a = &account{}
		s.numbers[n] = a
	}
	switch {
	case a.kept[class]:
		a.kept[class] = false
		return true
	case s.may(a, class):
		s.count(a, class, 1)
		return true
	case !a.waits[class]:
		a.waits[class] = true
		s.waiting = append(s.waiting, claim{n, class})
	}
	return false
}

// may: whether one more is free for a number's webhook of the class.
func (s *slots) may(a *account, class slotClass) bool {
	if s.used[proven]+s.used[suspect] >= s.size {
		return false
	}
	half := max(1, s.size/2)
	return class == proven || s.used[suspect] < half && a.used[suspect] < max(1, half/len(s.numbers))
}

func (s *slots) count(a *account, class slotClass, n int) {
	s.used[class] += n
	a.used[class] += n
}

// left is how many are free.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.used[proven] - s.used[suspect]
}

// inUse is how many of a class are in use.
func (s *slots) inUse(class slotClass) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[class]
}

// give returns a slot: to the number that has waited longest, which is woken.
func (s *slots) give(n *number, class slotClass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.numbers[n]; a != nil {
		s.count(a, class, -1)
	} else {
		s.used[class]-- // the number has left, its request has ended
	}
	s.grant()
}

// passOn is called by a number that has started all it could: a slot that was
// kept for it and that it did not need goes to the next.
func (s *slots) passOn(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.giveBack(n) {
		s.grant()
	}
}

// leave takes a number that starts nothing any more out of the line.
func (s *slots) leave(n *number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers[n] == nil {
		return
	}
	s.giveBack(n)
	delete(s.numbers, n)
	rest := s.waiting[:0]
	for _, c := range s.waiting {
		if c.n != n {
			rest = append(rest, c)
		}
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
	s.grant()
}

func (s *slots) giveBack(n *number) (given bool) {
	a := s.numbers[n]
	if a == nil {
		return false
	}
	for class := range a.kept {
		if a.kept[class] {
			a.kept[class], given = false, true
			s.count(a, slotClass(class), -1)
		}
	}
	return given
}

// grant keeps what is free for those that wait, in the order in which they asked.
func (s *slots) grant() {
	rest := s.waiting[:0]
	for _, c := range s.waiting {
		a := s.numbers[c.n]
		if !s.may(a, c.class) {
			rest = append(rest, c)
			continue
		}
		s.count(a, c.class, 1)
		a.waits[c.class], a.kept[c.class] = false, true
		c.n.inbox.wake()
	}
	clear(s.waiting[len(rest):])
	s.waiting = rest
}
