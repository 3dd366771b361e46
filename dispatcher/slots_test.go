package dispatcher

import "testing"

func waiter() *number { return &number{inbox: newInbox()} }

// woken says whether n was woken since it was last asked.
func woken(n *number) bool {
	select {
	case <-n.inbox.bell:
		return true
	default:
		return false
	}
}

func mustTake(t *testing.T, s *slots, n *number, want bool) {
	t.Helper()
	if got := s.take(n, proven); got != want {
		t.Fatalf("took a slot: %v, want %v (%d free)", got, want, s.left())
	}
}

// Slots that come free go to the waiting numbers in the order in which they asked.
func TestSlotsAreGivenInOrder(t *testing.T) {
	s := newSlots(2)
	busy, first, second := waiter(), waiter(), waiter()
	mustTake(t, s, busy, true)
	mustTake(t, s, busy, true)
	mustTake(t, s, first, false)
	mustTake(t, s, second, false)
	mustTake(t, s, first, false) // asks again: that costs it nothing

	s.give(busy, proven)
	if !woken(first) || woken(second) || woken(busy) {
		t.Fatal("the number that has waited longest was not the one woken")
	}
	mustTake(t, s, first, true)
	s.give(busy, proven)
	if !woken(second) || woken(first) {
		t.Fatal("the next was not woken")
	}
	mustTake(t, s, second, true)
	if s.left() != 0 {
		t.Errorf("%d free, want none", s.left())
	}
}

// A slot that was given to a waiting number is not taken by one that comes in
// between: else a number with much to send starves the others.
func TestSlotsCannotBeSnatched(t *testing.T) {
	s := newSlots(1)
	greedy, patient := waiter(), waiter()
	mustTake(t, s, greedy, true)
	mustTake(t, s, patient, false)
	s.give(greedy, proven)
	mustTake(t, s, greedy, false)
	mustTake(t, s, patient, true)
	s.give(patient, proven)
	if !woken(greedy) {
		t.Fatal("the number that asked meanwhile was not woken")
	}
	mustTake(t, s, greedy, true)
}

// A number that was woken and has nothing to start passes its slot on.
func TestSlotIsPassedOn(t *testing.T) {
	s := newSlots(1)
	busy, first, second := waiter(), waiter(), waiter()
	mustTake(t, s, busy, true)
	mustTake(t, s, first, false)
	mustTake(t, s, second, false)
	s.give(busy, proven)
	s.passOn(second) // not woken yet: it has nothing to pass on
	s.passOn(busy)
	s.passOn(first)
	if !woken(second) {
		t.Fatal("the slot was not passed on")
	}
	mustTake(t, s, second, true)
	s.passOn(second)
	s.give(busy, proven)
	if s.left() != 1 {
		t.Errorf("%d free, want 1", s.left())
	}
}

// A number that ends leaves the line, and takes no slot with it.
func TestSlotsOfANumberThatEnds(t *testing.T) {
	s := newSlots(1)
	busy, first, second, third := waiter(), waiter(), waiter(), waiter()
	mustTake(t, s, busy, true)
	mustTake(t, s, first, false)
	mustTake(t, s, second, false)
	mustTake(t, s, third, false)
	s.leave(first) // while it waits
	s.give(busy, proven)
	if woken(first) || !woken(second) {
		t.Fatal("a number that has ended was woken")
	}
	s.leave(second) // with a slot that it was woken for
	if !woken(third) {
		t.Fatal("the slot of a number that has ended was not passed on")
	}
	mustTake(t, s, third, true)
	s.give(busy, proven)
	if s.left() != 1 {
		t.Errorf("%d free, want 1", s.left())
	}
}
