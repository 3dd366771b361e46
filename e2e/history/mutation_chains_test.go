package history_test

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// chainMutations break what the topics hold of an event.
var chainMutations = []mutation{
	{"an acknowledged event is gone", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		e := one(h.Topics.Events, pick, any1)
		if e == nil || e.Moved != nil {
			return false
		}
		h.Topics.Events = without(h.Topics.Events, e)
		return true
	}},
	{"an acknowledged event has another value", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		s := one(h.Sent, pick, any1)
		if s == nil {
			return false
		}
		s.Value = history.HashOf([]byte("other"))
		return true
	}},
	{"an event never ends", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		h.Topics.Attempts = without(h.Topics.Attempts, a)
		return true
	}},
	{"an event is never tried", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return a.Number == 1 && a.Outcome != record.Failed })
		if a == nil {
			return false
		}
		id, place := a.ID, a.Source
		h.Topics.Attempts = without(h.Topics.Attempts, a)
		h.Topics.Dead = slices.DeleteFunc(h.Topics.Dead, func(d history.Dead) bool { return d.Source == place })
		h.Requests = slices.DeleteFunc(h.Requests, func(q history.Request) bool { return q.ID == id })
		h.Topics.Waiting = slices.DeleteFunc(h.Topics.Waiting, func(w history.Waiting) bool { return w.Source == place })
		return true
	}},
	{"an attempt is in the log twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, any1)
		if a == nil {
			return false
		}
		again := *a
		again.Place.Offset += 1000
		h.Topics.Attempts = append(h.Topics.Attempts, again)
		return true
	}},
	{"attempt numbers have a gap", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, numbered)
		if a == nil {
			return false
		}
		a.Number++
		return true
	}},
	{"a dead event is not in the DLQ", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, any1)
		if d == nil {
			return false
		}
		h.Topics.Dead = without(h.Topics.Dead, d)
		return true
	}},
	{"a dead letter is there twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, any1)
		if d == nil {
			return false
		}
		again := *d
		again.Place.Offset += 1000
		h.Topics.Dead = append(h.Topics.Dead, again)
		return true
	}},
	{"a delivered event is in the DLQ", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		d := history.Dead{
			Place: a.Place, Written: a.Written, Webhook: a.Webhook, ID: a.ID, Source: a.Source, Attempts: a.Number, Reason: record.PermanentStatus,
		}
		for _, e := range h.Topics.Events {
			if e.Place == a.Source {
				d.Value, d.Headers = e.Value, e.Headers
			}
		}
		h.Topics.Dead = append(h.Topics.Dead, d)
		return true
	}},
	{"a dead letter has another value", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, any1)
		if d == nil {
			return false
		}
		d.Value = history.HashOf([]byte("{}"))
		return true
	}},
	{"a dead letter has other headers", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, any1)
		if d == nil {
			return false
		}
		d.Headers = history.HashOf([]byte("{}"))
		return true
	}},
	{"a dead letter counts other attempts", history.OneChain, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, any1)
		if d == nil {
			return false
		}
		d.Attempts++
		return true
	}},
	{"an event died too early", history.Policy, func(h *history.History, pick func(int) int) bool {
		d := one(h.Topics.Dead, pick, func(d *history.Dead) bool { return d.Reason == record.AttemptsExhausted })
		if d == nil {
			return false
		}
		r := h.Rules[d.Webhook]
		r.MaxAttempts++
		h.Rules[d.Webhook] = r
		return true
	}},
	{"an event was tried too often", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return a.Number > 1 })
		if a == nil {
			return false
		}
		r := h.Rules[a.Webhook]
		r.MaxAttempts = a.Number - 1
		h.Rules[a.Webhook] = r
		return true
	}},
	{"a retry record is missing", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, func(w *history.Waiting) bool {
			return retry(w) && w.DueAt.Sub(w.Written) < 32*time.Second && attemptOf(h, w).NextDueAt.Sub(attemptOf(h, w).Started) < 32*time.Second
		})
		if w == nil {
			return false
		}
		h.Topics.Waiting = without(h.Topics.Waiting, w)
		return true
	}},
	{"a retry record is there twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, retry)
		if w == nil {
			return false
		}
		again := *w
		again.Place.Offset += 1000
		h.Topics.Waiting = append(h.Topics.Waiting, again)
		return true
	}},
	{"a parked record is there twice", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, parked)
		if w == nil || resumed(h, w.Webhook) { // which may have put it there again
			return false
		}
		again := *w
		again.Place.Offset++
		h.Topics.Waiting = append(h.Topics.Waiting, again)
		return true
	}},
	{"a retry record has another value", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, any1)
		if w == nil {
			return false
		}
		w.Value = history.HashOf([]byte("other"))
		return true
	}},
	{"a retry record counts other attempts", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, retry)
		if w == nil {
			return false
		}
		w.Attempts += 7
		return true
	}},
	{"a retry record is due at another time than the log says", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, retry)
		if w == nil {
			return false
		}
		w.DueAt = w.DueAt.Add(-time.Millisecond)
		return true
	}},
	{"a record is in another partition than its event", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, any1)
		if w == nil {
			return false
		}
		w.Place.Partition += 5
		return true
	}},
	{"a record speaks of no event", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, any1)
		if a == nil {
			return false
		}
		a.Source.Offset += 1000
		return true
	}},
	{"a finished event goes on", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		h.Topics.Waiting = append(h.Topics.Waiting, history.Waiting{
			Place: a.Place, Tier: 2 * time.Second, Written: a.Written, Webhook: a.Webhook, ID: a.ID, Source: a.Source, Attempts: a.Number,
		})
		return true
	}},
	{"what was parked is gone", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, func(w *history.Waiting) bool {
			a := attemptOf(h, w)
			return parked(w) && a != nil && a.Next == record.NextParked
		})
		if w == nil {
			return false
		}
		h.Topics.Waiting = without(h.Topics.Waiting, w)
		return true
	}},
	{"the state counts one parked event too few or too many", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, func(s *history.State) bool { return lastState(h, s) && s.Parked != nil })
		if s == nil {
			return false
		}
		s.Parked.Count += int64(2*pick(2) - 1)
		return true
	}},
	{"the state forgets what is parked", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		s := one(h.Topics.States, pick, func(s *history.State) bool { return lastState(h, s) && s.Parked != nil })
		if s == nil {
			return false
		}
		s.Parked = nil
		return true
	}},
	{"a moved event is moved again", history.OneChain, func(h *history.History, pick func(int) int) bool {
		e := one(h.Topics.Events, pick, func(e *history.Event) bool { return e.Moved != nil })
		if e == nil {
			return false
		}
		again := *e
		again.Place.Offset += 1000
		h.Topics.Events = append(h.Topics.Events, again)
		return true
	}},
	{"a moved event is handled at its first place", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool {
			return slices.ContainsFunc(h.Topics.Events, func(e history.Event) bool { return e.Place == a.Source && e.Moved != nil })
		})
		if a == nil {
			return false
		}
		for _, e := range h.Topics.Events {
			if e.Place == a.Source {
				again := *a
				again.Source = *e.Moved
				again.Place.Partition = e.Moved.Partition
				h.Topics.Attempts = append(h.Topics.Attempts, again)
			}
		}
		return true
	}},
	{"a moved event changes its value", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		e := one(h.Topics.Events, pick, func(e *history.Event) bool { return e.Moved != nil })
		if e == nil {
			return false
		}
		other := history.HashOf([]byte("other"))
		for i := range h.Topics.Events {
			if x := &h.Topics.Events[i]; x.Place == *e.Moved {
				x.Value = other
			}
		}
		for i := range h.Sent {
			if s := &h.Sent[i]; s.Source == *e.Moved {
				s.Value = other
			}
		}
		return true
	}},
	{"a record names another event than its place does", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, any1)
		if w == nil {
			return false
		}
		w.ID += "x"
		return true
	}},
	{"a delivered event is tried again", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return delivered(a) && a.Number < h.Rules[a.Webhook].MaxAttempts-1 })
		if a == nil {
			return false
		}
		again := *a
		again.Number++
		again.Place.Offset += 1000
		again.Outcome, again.Next, again.Status, again.Error, again.NextDueAt = record.Failed, record.NextParked, 0, "refused", time.Time{}
		h.Topics.Attempts = append(h.Topics.Attempts, again)
		return true
	}},
	{"an event is delivered after its last attempt", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return delivered(a) && a.Number > 1 })
		if a == nil || slices.ContainsFunc(h.Topics.Attempts, func(x history.Attempt) bool { return x.Webhook == a.Webhook && x.Number >= a.Number && failed(&x) }) {
			return false
		}
		r := h.Rules[a.Webhook]
		r.MaxAttempts = a.Number - 1
		h.Rules[a.Webhook] = r
		return true
	}},
	{"a delivered event is to be tried again", history.OneChain, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		a.Next = record.NextRetry
		return true
	}},
	{"an event is parked and retried", history.OneChain, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, func(w *history.Waiting) bool {
			a := attemptOf(h, w)
			return parked(w) && a != nil && a.Next == record.NextParked
		})
		if w == nil {
			return false
		}
		again := *w
		again.Tier = 2 * time.Second
		h.Topics.Waiting = append(h.Topics.Waiting, again)
		return true
	}},
	{"a good answer counts as a failure", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, failed)
		if a == nil {
			return false
		}
		a.Status = 202
		return true
	}},
	{"a redirect counts as delivered", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		a.Status = 302
		return true
	}},
	{"the last attempt is followed by another", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return a.Outcome == record.Dead && a.Number > 0 })
		if a == nil {
			return false
		}
		a.Outcome, a.Next = record.Failed, record.NextRetry
		return true
	}},
}
