package history_test

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// orderMutations break the orderings, and what becomes of copies.
var orderMutations = []mutation{
	{"the next goes out before the head has ended", history.Strict, overtakes(record.OrderStrict)},
	{"the next of a key goes out before the head has ended", history.Strict, overtakes(record.OrderStrictKey)},
	{"retries go out beside the rest, in strict order", history.Strict, claim(record.OrderFirstAttempt, record.OrderStrict, overtaken)},
	{"retries of a key go out beside its rest", history.Strict, claim(record.OrderKey, record.OrderStrictKey, overtakenInKey)},
	{"another key goes on, in strict order", history.Strict, claim(record.OrderStrictKey, record.OrderStrict, overtaken)},
	{"first attempts of a key swap", history.Order, func(h *history.History, pick func(int) int) bool {
		return swapFirsts(h, pick, record.OrderKey, func(a, b *history.Event) bool { return a.PartitionKey == b.PartitionKey })
	}},
	{"two requests of a key at once", history.Policy, func(h *history.History, pick func(int) int) bool {
		return together(h, pick, record.OrderKey, func(a, b *history.Event) bool { return a.PartitionKey == b.PartitionKey })
	}},
	{"two requests of one event at once", history.Policy, func(h *history.History, pick func(int) int) bool {
		return together(h, pick, record.OrderNone, func(a, b *history.Event) bool { return a.ID == b.ID })
	}},
	{"more in flight than are asked for", history.Policy, func(h *history.History, pick func(int) int) bool {
		h.Incidents = nil
		q := one(h.Requests, pick, func(q *history.Request) bool {
			return answered(q) && h.Rules[q.Webhook].Ordering == record.OrderNone && h.Rules[q.Webhook].MaxInFlight > 1
		})
		if q == nil {
			return false
		}
		for range h.Rules[q.Webhook].MaxInFlight {
			again := *q
			again.ID += "'"
			h.Requests = append(h.Requests, again)
		}
		return true
	}},
	{"a copy is delivered, too", history.Once, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, duplicate)
		if a == nil {
			return false
		}
		a.Outcome, a.Number, a.Started, a.Status = record.Delivered, 1, a.Written, 204
		return true
	}},
	{"what nobody has delivered is a copy", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool { return delivered(a) && lone(h, a.ID) })
		if a == nil {
			return false
		}
		a.Outcome, a.Number = record.Duplicate, 0
		return true
	}},
	{"what was delivered later makes a copy", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, duplicate)
		if a == nil {
			return false
		}
		for i := range h.Topics.Attempts {
			if b := &h.Topics.Attempts[i]; b.ID == a.ID && delivered(b) {
				b.Started = far
			}
		}
		return true
	}},
	{"what was delivered before the window makes a copy", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, duplicate)
		if a == nil {
			return false
		}
		h.Window = time.Minute
		for i := range h.Topics.Events {
			if e := &h.Topics.Events[i]; e.Place == a.Source {
				e.Written = far
			}
		}
		return true
	}},
	{"what was delivered of another redrive makes a copy", history.NothingLost, func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, duplicate)
		if a == nil {
			return false
		}
		eventAt(h, a.Source).Redrive = "run/1"
		return true
	}},
}

func duplicate(a *history.Attempt) bool { return a.Outcome == record.Duplicate }

// eventAt is the one that lies at a place.
func eventAt(h *history.History, place record.Source) *history.Event {
	for i := range h.Topics.Events {
		if e := &h.Topics.Events[i]; e.Place == place {
			return e
		}
	}
	panic("there is no event at " + place.String())
}

// overtakes moves a request, and what the log says of it, to where the event before it
// in its lane waits for its second attempt.
func overtakes(o record.Ordering) func(*history.History, func(int) int) bool {
	return func(h *history.History, pick func(int) int) bool {
		first := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool {
			return a.Number == 1 && failed(a) && h.Rules[a.Webhook].Ordering == o && lone(h, a.ID)
		})
		if first == nil {
			return false
		}
		at := first.Started.Add(first.Duration + 500*time.Millisecond)
		next := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool {
			return a.Number == 1 && a.Status > 0 && a.Webhook == first.Webhook && a.Source.Offset > first.Source.Offset && lone(h, a.ID) &&
				(o == record.OrderStrict || eventAt(h, a.Source).PartitionKey == eventAt(h, first.Source).PartitionKey)
		})
		if next == nil {
			return false
		}
		h.Incidents = nil
		next.Started = at
		for i := range h.Requests {
			if q := &h.Requests[i]; q.ID == next.ID && q.Attempt == 1 {
				q.Start, q.End = at, at.Add(next.Duration)
			}
		}
		return true
	}
}

// claim says of a webhook that it has another ordering, where its history shows that it
// has not.
func claim(has, says record.Ordering, shows func(h *history.History, a *history.Attempt) bool) func(*history.History, func(int) int) bool {
	return func(h *history.History, pick func(int) int) bool {
		a := one(h.Topics.Attempts, pick, func(a *history.Attempt) bool {
			return a.Number > 1 && h.Rules[a.Webhook].Ordering == has && shows(h, a)
		})
		if a == nil {
			return false
		}
		r := h.Rules[a.Webhook]
		r.Ordering = says
		h.Rules[a.Webhook] = r
		return true
	}
}

// overtaken is whether a later event was tried before a further attempt of this one.
func overtaken(h *history.History, a *history.Attempt) bool {
	return slices.ContainsFunc(h.Topics.Attempts, func(b history.Attempt) bool { return overtook(h, &b, a) })
}

func overtakenInKey(h *history.History, a *history.Attempt) bool {
	return slices.ContainsFunc(h.Topics.Attempts, func(b history.Attempt) bool {
		return overtook(h, &b, a) && eventAt(h, a.Source).PartitionKey == eventAt(h, b.Source).PartitionKey
	})
}

func overtook(h *history.History, b, a *history.Attempt) bool {
	return b.Webhook == a.Webhook && b.Status > 0 && b.Source.Offset > a.Source.Offset && b.Started.Before(a.Started) && lone(h, b.ID)
}

// swapFirsts swaps two first requests of a webhook that has an ordering.
func swapFirsts(h *history.History, pick func(int) int, o record.Ordering, fit func(a, b *history.Event) bool) bool {
	var all []*history.Request
	for i := range h.Requests {
		if q := &h.Requests[i]; h.Rules[q.Webhook].Ordering == o && lone(h, q.ID) && requestsOf(h, q.ID) == 1 {
			all = append(all, q)
		}
	}
	for range len(all) * len(all) {
		a, b := all[pick(len(all))], all[pick(len(all))]
		if a != b && a.Attempt == 1 && b.Attempt == 1 && a.Webhook == b.Webhook && fit(eventOf(h, a), eventOf(h, b)) {
			*a, *b = *b, *a
			return true
		}
	}
	return false
}

func requestsOf(h *history.History, id string) (n int) {
	for _, q := range h.Requests {
		if q.ID == id {
			n++
		}
	}
	return n
}

// together has two requests of a webhook in flight at once.
func together(h *history.History, pick func(int) int, o record.Ordering, fit func(a, b *history.Event) bool) bool {
	h.Incidents = nil
	var all []*history.Request
	for i := range h.Requests {
		if q := &h.Requests[i]; answered(q) && h.Rules[q.Webhook].Ordering == o {
			all = append(all, q)
		}
	}
	for range len(all) * len(all) {
		a, b := all[pick(len(all))], all[pick(len(all))]
		if a != b && a.Webhook == b.Webhook && (lone(h, a.ID) && lone(h, b.ID) || a.ID == b.ID) && b.Start.After(a.End) && fit(eventOf(h, a), eventOf(h, b)) {
			a.End = far
			return true
		}
	}
	return false
}

func eventOf(h *history.History, q *history.Request) *history.Event {
	for i := range h.Topics.Events {
		if e := &h.Topics.Events[i]; e.ID == q.ID && e.Webhook == q.Webhook {
			return e
		}
	}
	panic("there is no event " + q.ID)
}
