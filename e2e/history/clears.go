package history

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// clear is when a webhook's streak was set to 0 and its pause lifted by somebody:
// at some moment from and to.
type clear struct{ from, to time.Time }

// never is later than everything in a run.
var never = time.Unix(1<<40, 0)

// findClears: a resume takes effect between the command and its result; any
// other end of a pause between the last state that was paused and the first that
// was not.
func (w *webhook) findClears() {
	asked := map[string]time.Time{}
	for _, a := range w.acts {
		at, known := asked[a.ID]
		switch {
		case a.Action == record.ActionResume && !known:
			asked[a.ID] = a.Written
		case a.Result == record.ResultDone && known:
			w.clears = append(w.clears, clear{at, a.Written})
		}
	}
	var paused *State
	for i := range w.states {
		s := &w.states[i]
		if paused != nil && !s.paused() && !w.resumedBetween(paused.Written, s.Written) {
			w.clears = append(w.clears, clear{paused.Written, s.Written})
		}
		paused = nil
		if s.paused() {
			paused = s
		}
	}
	slices.SortFunc(w.clears, func(a, b clear) int { return a.from.Compare(b.from) })
}

// nextClear is the earliest that a pause which began at t can have ended.
func (w *webhook) nextClear(t time.Time) time.Time {
	for _, cl := range w.clears {
		if cl.to.After(t) {
			return later(cl.from, t)
		}
	}
	return never
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
		results := map[string]int{}
		for _, a := range w.acts {
			if a.Result != "" {
				results[a.ID]++
			}
		}
		for _, a := range w.acts {
			switch n := results[a.ID]; {
			case a.Action == "":
			case n > 1:
				c.broken(OneChain, w.id, "", "the command %s (%s) has %d results", a.ID, a.Action, n)
			case n == 0 && c.Final:
				c.broken(NothingLost, w.id, "", "the command %s (%s) has no result", a.ID, a.Action)
			}
		}
	})
}
