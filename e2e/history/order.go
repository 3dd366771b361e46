package history

import (
	"cmp"
	"slices"
	"time"
)

// What may overtake what follows from the webhook's ordering. Where that was changed,
// two events are in order only if every configuration wants them to be that an owner can
// have gone by since the first of them was there.

// inOrder says whether b must not overtake a until a time, where orders says what one
// configuration wants.
func (c *checker) inOrder(w *webhook, a *chain, until time.Time, orders func(*setting) bool) bool {
	return c.always(&w.rules, a.event.Written.Add(-c.Slack), until, orders)
}

// checkOrder: the first requests of a webhook's events arrive in the order of
// the partition. What is parked keeps its order, so resuming changes nothing.
// Events that share an id can't be told apart, and are left out.
func (c *checker) checkOrder() {
	c.each(func(w *webhook) {
		first := map[*request]*chain{}
		for _, ch := range w.chains {
			if ch.firstAt != nil && ch.firstAt.Attempt == 1 {
				first[ch.firstAt] = ch
			}
		}
		var before []*chain // in the order of the partition
		for _, q := range w.requests {
			ch := first[q]
			if ch == nil {
				continue
			}
			i, _ := slices.BinarySearchFunc(before, ch, byPlace)
			for _, newer := range before[i:] {
				if c.inOrder(w, ch, q.Start, func(s *setting) bool { return s.orders(&ch.event, &newer.event) }) {
					c.brokenFor(ch, Order, "its first request arrived at %s, after that of %q at %s, which lies behind it in the partition (%s and %s)",
						clock(q.Start), newer.event.ID, clock(newer.firstAt.Start), ch.event.Place, newer.event.Place)
					break
				}
			}
			before = slices.Insert(before, i, ch)
		}
	})
}

func byPlace(a, b *chain) int { return cmp.Compare(a.event.Place.Offset, b.event.Place.Offset) }

// checkStrict: where the order is strict, no request starts before every earlier event
// is delivered or dead. One that an incident has made forgotten may follow a success
// that was forgotten too.
func (c *checker) checkStrict() {
	c.each(func(w *webhook) {
		alive := slices.DeleteFunc(slices.Clone(w.chains), func(ch *chain) bool { return ch.movedTo != nil })
		slices.SortStableFunc(alive, byPlace)
		index := map[*chain]int{}
		busy := make([]time.Time, len(alive)+1) // until when any of those before it was tried
		for i, ch := range alive {
			index[ch] = i
			busy[i+1] = later(busy[i], ch.busyUntil())
		}
		for _, q := range w.requests {
			if q.chain == nil || !busy[index[q.chain]].After(q.Start) {
				continue
			}
			for _, a := range alive[:index[q.chain]] {
				if a.busyUntil().After(q.Start) && c.strictly(w, a, q) && !c.doneBefore(w, a, q) {
					c.brokenFor(q.chain, Strict, "its request arrived at %s, attempt %d; %q at %s, before it in the partition, was tried %s",
						clock(q.Start), q.Attempt, a.event.ID, a.event.Place, a.busyText())
					break
				}
			}
		}
	})
}

// busyUntil is when nothing more was tried of an event: the end of its last attempt, or
// never. When one that ended without a request did so, nobody can tell exactly.
func (ch *chain) busyUntil() time.Time {
	last, tried := ch.lastTry()
	switch {
	case ch.end() == nil:
		return never
	case !tried:
		return time.Time{}
	}
	return last.ended()
}

func (ch *chain) busyText() string {
	if until := ch.busyUntil(); until.Before(never) {
		return "until " + clock(until)
	}
	return "to the end"
}

func (c *checker) strictly(w *webhook, a *chain, q *request) bool {
	return c.inOrder(w, a, q.Start, func(s *setting) bool { return s.strict() && s.orders(&a.event, &q.chain.event) })
}

// doneBefore: whether a was done before q, which is not in the log, by a request that
// may be none of the log's. Of failures only that of a first and only attempt counts:
// the death of an event that has kept others back is committed before they start.
func (c *checker) doneBefore(w *webhook, a *chain, q *request) bool {
	return q.logged == nil && slices.ContainsFunc(w.requests, func(r *request) bool {
		return r.ID == a.event.ID && !r.End.IsZero() && !r.End.After(q.Start.Add(c.Slack)) &&
			(succeeded(r.Status) || r.Attempt == 1 && !c.always(&w.rules, r.Start, r.Start, func(s *setting) bool { return s.MaxAttemptsOr() > 1 }))
	})
}
