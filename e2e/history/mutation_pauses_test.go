package history_test

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// pauseMutations break streaks, pauses and commands.
var pauseMutations = []mutation{
	{"a state counts what never was", history.OneChain, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, func(s *history.State) bool { return !lastState(h, s) })
		if s == nil {
			return false
		}
		s.Streak = 99
		return true
	}},
	{"a request goes out during a pause", history.Pauses, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, paused)
		if s == nil {
			return false
		}
		q := one(h.Requests, pick, func(q *history.Request) bool { return q.Webhook == s.Webhook })
		if q == nil {
			return false
		}
		again := *q
		again.Start, again.End = s.Written.Add(4*time.Millisecond), s.Written.Add(5*time.Millisecond)
		h.Requests = append(h.Requests, again)
		return true
	}},
	{"an attempt starts right after the last failure", history.Pauses, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, paused)
		// A resume before may have crossed an attempt, and nobody can tell which
		// failure was the last.
		if s == nil || slices.ContainsFunc(h.Topics.Acts, func(a history.Act) bool { return a.Webhook == s.Webhook && a.Written.Before(s.Written) }) {
			return false
		}
		// The next event's attempt, moved into the pause: before the pause is
		// even committed.
		var last *history.Attempt
		for i := range h.Topics.Attempts {
			a := &h.Topics.Attempts[i]
			switch {
			case a.Webhook != s.Webhook || a.Number == 0:
			case !a.Written.After(s.Written):
				last = a
			case last != nil:
				a.Started, a.DueAt = last.Started.Add(last.Duration+4*time.Millisecond), time.Time{}
				return true
			}
		}
		return false
	}},
	{"one failure more than pauses", history.Pauses, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, paused)
		if s == nil || h.Rules[s.Webhook].AutoPauseAfter < 3 {
			return false
		}
		r := h.Rules[s.Webhook]
		r.AutoPauseAfter--
		h.Rules[s.Webhook] = r
		return true
	}},
	{"a pause is nowhere written", history.Pauses, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, paused)
		if s == nil {
			return false
		}
		id := s.Webhook
		h.Topics.States = slices.DeleteFunc(h.Topics.States, func(x history.State) bool { return x.Webhook == id && paused(&x) })
		return true
	}},
	{"a pause without a streak", history.Policy, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, func(s *history.State) bool { return !paused(s) && s.Streak > 0 })
		if s == nil || slices.ContainsFunc(h.Topics.States, func(x history.State) bool { return x.Webhook == s.Webhook && paused(&x) }) {
			return false
		}
		s.Reasons = []record.PauseReason{record.PauseFailures}
		return true
	}},
	{"the state counts a failure twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, func(s *history.State) bool { return lastState(h, s) })
		if s == nil {
			return false
		}
		s.Streak++
		return true
	}},
	{"a command is carried out twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Acts, pick, func(a *history.Act) bool { return a.Result != "" })
		if a == nil {
			return false
		}
		again := *a
		again.Place.Offset += 1000
		h.Topics.Acts = append(h.Topics.Acts, again)
		return true
	}},
	{"a command has no result", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Acts, pick, func(a *history.Act) bool { return a.Result != "" })
		if a == nil {
			return false
		}
		h.Topics.Acts = without(h.Topics.Acts, a)
		return true
	}},
}
