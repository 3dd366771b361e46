package record

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// OrderingKeyHash is what a head says of its ordering key; empty for an event that
// has none.
func OrderingKeyHash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%x", sum[:8])
}

// HeadAt is the head that lay at source in the events topic; nil when none did.
func (s *State) HeadAt(source Source) *Head {
	if s.Head != nil && s.Head.Source == source {
		return s.Head
	}
	for i := range s.Heads {
		if s.Heads[i].Source == source {
			return &s.Heads[i]
		}
	}
	return nil
}

// SetHead adds a head, or replaces the one with its source. Earlier copies of the
// state keep theirs.
func (s *State) SetHead(h Head) {
	i := slices.IndexFunc(s.Heads, func(other Head) bool { return other.Source == h.Source })
	switch {
	case s.Head != nil && s.Head.Source == h.Source, s.Head == nil && i < 0:
		s.Head = &h
	case i >= 0:
		s.Heads = slices.Clone(s.Heads)
		s.Heads[i] = h
	default:
		s.Heads = append(slices.Clip(s.Heads), h)
	}
}

// DropHead takes the head at source away; false says that there was none.
func (s *State) DropHead(source Source) bool {
	if s.Head != nil && s.Head.Source == source {
		s.Head = nil
		return true
	}
	i := slices.IndexFunc(s.Heads, func(h Head) bool { return h.Source == source })
	if i < 0 {
		return false
	}
	s.Heads = slices.Delete(slices.Clone(s.Heads), i, i+1)
	return true
}

// EachHead calls f with every head until it returns false.
func (s *State) EachHead(f func(*Head) bool) {
	if s.Head != nil && !f(s.Head) {
		return
	}
	for i := range s.Heads {
		if !f(&s.Heads[i]) {
			return
		}
	}
}

// HeadCount is how many heads there are.
func (s *State) HeadCount() int {
	n := len(s.Heads)
	if s.Head != nil {
		n++
	}
	return n
}
