package history_test

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
)

// requestMutations break what the receivers saw, and when.
var requestMutations = []mutation{
	{"a request comes out of nothing", history.Repeats, func(h *history.History, pick func(int) int) bool {
		q := one(h.Requests, pick, any1)
		if q == nil {
			return false
		}
		again := *q
		again.Start, again.End = far, far
		h.Requests = append(h.Requests, again)
		return true
	}},
	{"a request has a number of its own", history.OneChain, func(h *history.History, pick func(int) int) bool {
		q := one(h.Requests, pick, answered)
		if q == nil {
			return false
		}
		q.Attempt += 7
		return true
	}},
	{"a request for an event that nobody sent", history.OneChain, func(h *history.History, pick func(int) int) bool {
		q := one(h.Requests, pick, any1)
		if q == nil {
			return false
		}
		q.ID += "x"
		return true
	}},
	{"a request has another body", history.SameBytes, func(h *history.History, pick func(int) int) bool {
		q := one(h.Requests, pick, any1)
		if q == nil {
			return false
		}
		q.Value = history.HashOf([]byte("other"))
		return true
	}},
	{"a delivery that nobody received", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, delivered)
		if a == nil {
			return false
		}
		id, n := a.ID, a.Number
		h.Requests = slices.DeleteFunc(h.Requests, func(q history.Request) bool { return q.ID == id && q.Attempt == n })
		return true
	}},
	{"first attempts swap", history.Order, func(h *history.History, pick func(int) int) bool {
		first := map[string]*history.Request{}
		seen := map[string]bool{}
		for i := range h.Requests {
			q := &h.Requests[i]
			if seen[q.ID] || q.Attempt != 1 || !singleFile(h, q.Webhook) || !lone(h, q.ID) {
				seen[q.ID] = true
				delete(first, q.Webhook) // another request lies between
				continue
			}
			seen[q.ID] = true
			if before := first[q.Webhook]; before != nil {
				*before, *q = *q, *before
				return true
			}
			first[q.Webhook] = q
		}
		return false
	}},
	{"two requests at once", history.Policy, func(h *history.History, pick func(int) int) bool {
		h.Incidents = nil // else it may be two senders
		q := one(h.Requests, pick, func(q *history.Request) bool { return answered(q) && singleFile(h, q.Webhook) })
		if q == nil {
			return false
		}
		for _, x := range h.Requests {
			if x.Webhook == q.Webhook && x.Start.After(q.End) {
				q.End = far
				return true
			}
		}
		return false
	}},
	{"a request arrives before it is due", history.OnTime, func(h *history.History, pick func(int) int) bool {
		w := one(h.Topics.Waiting, pick, func(w *history.Waiting) bool { return retry(w) && lone(h, w.ID) })
		if w == nil {
			return false
		}
		q := one(h.Requests, pick, func(q *history.Request) bool { return q.ID == w.ID && q.Attempt == w.Attempts+1 })
		if q == nil {
			return false
		}
		q.Start = w.DueAt.Add(-time.Microsecond)
		return true
	}},
	{"an attempt starts before it is due", history.OnTime, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return !a.DueAt.IsZero() })
		if a == nil {
			return false
		}
		a.Started = a.DueAt.Add(-time.Millisecond)
		return true
	}},
	{"a retry is due too early", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, failed)
		if a == nil {
			return false
		}
		shiftDue(h, a, -time.Second<<a.Number/10-90*time.Second/10-time.Millisecond)
		return true
	}},
	{"a retry is due too late", history.Policy, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, failed)
		if a == nil {
			return false
		}
		shiftDue(h, a, time.Second<<a.Number/10+90*time.Second/10+4*time.Millisecond)
		return true
	}},
	{"a crash without its incident", history.Repeats, func(h *history.History, pick func(int) int) bool {
		if history.Check(*h).Extra == 0 {
			return false
		}
		h.Incidents = nil
		return true
	}},
}
