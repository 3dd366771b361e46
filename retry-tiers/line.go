package retrytiers

import (
	"slices"
	"time"
)

// Line is the delay topics in use, by their tiers.
type Line struct {
	tiers []time.Duration // ascending
}

// NewLine makes a line of at least one tier, in any order.
func NewLine(tiers []time.Duration) *Line {
	return &Line{tiers: slices.Sorted(slices.Values(tiers))}
}

// Tier is the one in which to wait: the largest that is not longer than the wait, else the shortest.
func (l *Line) Tier(wait time.Duration) time.Duration {
	i, found := slices.BinarySearch(l.tiers, wait)
	if !found {
		i = max(i-1, 0)
	}
	return l.tiers[i]
}

// Leave says when a record leaves a delay topic, and whether that is for another hop (into the tier of what is left to
// wait then) or because it is due. The tier is that of the topic, configured or not, producedAt the record's timestamp.
//
// A record hops after its tier's time if it could wait in the largest tier then; anything shorter is waited out where it
// lies. So a record lies in the largest tier for less than twice that tier, and a wait w takes w/largest records, rounded
// down: 8 for 128 s with tiers up to 16 s.
func (l *Line) Leave(tier time.Duration, producedAt, due time.Time) (at time.Time, hop bool) {
	next := producedAt.Add(tier)
	if due.Sub(next) >= l.tiers[len(l.tiers)-1] {
		return next, true
	}
	return due, false
}
