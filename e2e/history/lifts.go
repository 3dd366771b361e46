package history

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// lift is when a webhook's streak was set to 0 and its pause lifted by somebody:
// at some moment between from and to.
type lift struct{ from, to time.Time }

// never is later than everything in a run.
var never = time.Unix(1<<40, 0)

// findLifts: a resume takes effect between the command and its result. Any other
// end of a pause shows in the state alone, which is written as late as an outcome
// may be uncommitted.
func (w *webhook) findLifts(uncommitted time.Duration) {
	asked := map[string]time.Time{}
	for _, a := range w.acts {
		at, known := asked[a.ID]
		switch {
		case a.Action == record.ActionResume && !known:
			asked[a.ID] = a.Written
		case a.Result == record.ResultDone && known:
			w.lifts = append(w.lifts, lift{at, a.Written})
		}
	}
	var paused *State
	for i := range w.states {
		s := &w.states[i]
		if paused != nil && !s.paused() && !w.resumedBetween(paused.Written, s.Written) {
			w.lifts = append(w.lifts, lift{later(paused.Written, s.Written.Add(-uncommitted)), s.Written})
		}
		paused = nil
		if s.paused() {
			paused = s
		}
	}
	slices.SortFunc(w.lifts, func(a, b lift) int { return a.from.Compare(b.from) })
}

// nextLift is when a pause that began at t can have ended.
func (w *webhook) nextLift(t time.Time) lift {
	for _, l := range w.lifts {
		if l.to.After(t) {
			return lift{later(l.from, t), l.to}
		}
	}
	return lift{never, never}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checkCommands: each command is carried out once, and answered.
func (c *checker) checkCommands() {
	c.each(func(w *webhook) {
		type key struct {
			number int32 // a command for all numbers has one id
			id     string
		}
		results := map[key]int{}
		for _, a := range w.acts {
			if a.Result != "" {
				results[key{a.Place.Partition, a.ID}]++
			}
		}
		for _, a := range w.acts {
			if a.Action == "" {
				continue
			}
			switch n := results[key{a.Place.Partition, a.ID}]; {
			case n > 1:
				c.broken(OneChain, w.id, "", "the command %s (%s) has %d results", a.ID, a.Action, n)
			case n == 0 && c.Final:
				c.broken(NothingLost, w.id, "", "the command %s (%s) has no result", a.ID, a.Action)
			}
		}
	})
}
