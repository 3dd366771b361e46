package history

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// streak is what the count of consecutive failures can have been after an
// attempt, or after a lift. It is a range where an attempt and a lift crossed,
// and nothing tells which of them the owner met first.
type streak struct {
	lo, hi int
	at     time.Time // the earliest that it can have been so
}

// pause is a time in which a webhook got no request.
type pause struct {
	from, to time.Time
	why      string
}

// fold counts as the owner does: over all attempts of the webhook, in the order
// of the log, retries included; a success and a lift begin anew.
func (c *checker) fold(w *webhook) []streak {
	deleted, gone := c.Topics.Deleted[w.id]
	log := slices.DeleteFunc(slices.Clone(w.attempts), func(a Attempt) bool {
		return a.Number == 0 || gone && a.ended().After(deleted)
	})
	var now streak
	all := []streak{now}
	var open []crossing
	lifts := w.lifts
	for i := 0; ; i++ {
		for len(lifts) > 0 && (i == len(log) || log[i].Written.After(lifts[0].from)) {
			open = append(open, c.cross(lifts[0], log, i))
			lifts = lifts[1:]
		}
		var still []crossing
		for _, x := range open {
			now.lo, now.at = 0, x.to
			if x.last == i {
				now.hi = min(now.hi, x.since)
			} else {
				still = append(still, x)
			}
			all = append(all, now)
		}
		open = still
		if i == len(log) {
			return all
		}
		now.at = log[i].ended()
		failed := log[i].Outcome != record.Delivered
		now.lo, now.hi = next(now.lo, failed), next(now.hi, failed)
		for j := range open {
			open[j].since = next(open[j].since, failed)
		}
		all = append(all, now)
	}
}

func next(count int, failed bool) int {
	if failed {
		return count + 1
	}
	return 0
}

// crossing is a lift that took effect before the attempt with the index last,
// or before one of those between.
type crossing struct {
	last  int
	since int // the count, had it taken effect before the first of them
	to    time.Time
}

func (c *checker) cross(l lift, log []Attempt, first int) crossing {
	last := first
	for last < len(log) && log[last].ended().Before(l.to.Add(c.Slack)) {
		last++
	}
	return crossing{last: last, to: l.to}
}

// checkStreaks: as many failures in a row as the policy says pause the webhook,
// never more and never fewer, and the state topic counts as the log does.
//
// Of a webhook that was deleted, what came before that counts: its owner hears of it
// later, and then it is nobody's streak any more. Of one that was made again nobody
// can tell what counts.
func (c *checker) checkStreaks() {
	c.each(func(w *webhook) {
		if w.rules.back() {
			return
		}
		_, deleted := c.Topics.Deleted[w.id]
		streaks := c.fold(w)
		if limit := w.rules.AutoPauseAfter; limit > 0 {
			c.findPauses(w, streaks, limit)
		}
		if !deleted {
			c.checkStates(w, streaks)
		}
	})
}

// stateSegment is the age from which compaction may have taken a state that is
// not the webhook's last: its segment is closed then.
const stateSegment = 10 * time.Minute

// findPauses: at the limit the webhook pauses.
func (c *checker) findPauses(w *webhook, streaks []streak, limit int) {
	var until time.Time
	for _, s := range streaks {
		if s.lo > limit {
			c.broken(Pauses, w.id, "", "%d attempts failed in a row, at %d it pauses", s.lo, limit)
			return
		}
		if s.lo < limit || s.at.Before(until) {
			continue
		}
		end := w.nextLift(s.at)
		until = end.from
		w.pauses = append(w.pauses, pause{s.at, until, "the streak was at its limit"})
		written := slices.ContainsFunc(w.states, func(x State) bool {
			return slices.Contains(x.Reasons, record.PauseFailures) &&
				!x.Written.Before(s.at.Add(-c.Slack)) && !x.Written.After(end.to.Add(c.Slack))
		})
		if !written && c.newestState.Sub(s.at) < stateSegment {
			c.broken(Pauses, w.id, "", "%d attempts had failed in a row at %s, and no state says that it paused", s.lo, clock(s.at))
		}
	}
}

// checkStates: each state's count is one that the log passed through, in this
// order; the last is where the log ends; and a pause for failures has a streak
// to be for.
func (c *checker) checkStates(w *webhook, streaks []streak) {
	at, count, was := 0, 0, false
	for _, s := range w.states {
		count = s.Streak
		before := at
		for at < len(streaks) && (count < streaks[at].lo || count > streaks[at].hi) {
			at++
		}
		if at == len(streaks) {
			c.broken(OneChain, w.id, "", "the state at %s counts %d failures in a row, which the log does not", s.Place, count)
			return
		}
		is := slices.Contains(s.Reasons, record.PauseFailures)
		if is && !was && !c.deserved(w, streaks[before:], s) {
			c.broken(Policy, w.id, "", "the state at %s pauses it for failures, and the log has fewer than %d in a row", s.Place, w.rules.AutoPauseAfter)
		}
		was = is
	}
	if end := streaks[len(streaks)-1]; count < end.lo || count > end.hi {
		c.broken(OneChain, w.id, "", "the last state counts %d failures in a row, the log ends with %d to %d", count, end.lo, end.hi)
	}
}

func (c *checker) deserved(w *webhook, streaks []streak, s State) bool {
	return slices.ContainsFunc(streaks, func(x streak) bool {
		return w.rules.AutoPauseAfter > 0 && x.hi >= w.rules.AutoPauseAfter && !x.at.After(s.Written.Add(c.Slack))
	})
}

// checkPauses: nothing starts while a webhook is paused or held. What was in flight
// when that began may end.
func (c *checker) checkPauses() {
	c.each(func(w *webhook) {
		for _, s := range w.states {
			if s.paused() {
				w.pauses = append(w.pauses, pause{s.Written, w.nextLift(s.Written).from, "its state is paused"})
			}
		}
		w.pauses = append(w.pauses, w.holds...)
		// With several in flight, the end of one and the start of another are told
		// by two goroutines.
		var several time.Duration
		if c.severalInFlight(w) {
			several = c.Slack
		}
		for _, a := range w.attempts {
			if p := w.pausedAt(a.Started, several); a.Number > 0 && p != nil {
				c.broken(Pauses, w.id, a.ID, "attempt %d started at %s; from %s until %s %s", a.Number, clock(a.Started), clock(p.from), p.end(), p.why)
			}
		}
		for _, q := range w.requests {
			if p := w.pausedAt(q.Start, c.Slack); q.logged == nil && p != nil {
				c.broken(Pauses, w.id, q.ID, "a request arrived at %s; from %s until %s %s", clock(q.Start), clock(p.from), p.end(), p.why)
			}
		}
	})
}

func (w *webhook) pausedAt(t time.Time, slack time.Duration) *pause {
	for i := range w.pauses {
		if p := &w.pauses[i]; t.After(p.from.Add(rounding+slack)) && t.Before(p.to) {
			return p
		}
	}
	return nil
}

func (p *pause) end() string {
	if p.to.Equal(never) {
		return "the end"
	}
	return clock(p.to)
}
