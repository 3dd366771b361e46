package history

import (
	"slices"
	"time"
)

// severalInFlight says whether a webhook may ever have had more than one request in
// flight.
func (c *checker) severalInFlight(w *webhook) bool {
	return !c.always(&w.rules, time.Time{}, never, func(s *setting) bool { return s.MaxInFlightOr() == 1 })
}

// checkInFlight: no more requests at a time than the webhook asks for, one of each
// ordering key where it asks for that, and never two of one event. Requests
// without an answer are left out, because their receiver doesn't know when their
// sender gave them up; those that an incident explains, because they may be of
// two senders.
func (c *checker) checkInFlight() {
	c.each(func(w *webhook) {
		var flight []*request
		for _, q := range w.requests {
			if c.explained(q) != nil {
				continue
			}
			flight = slices.DeleteFunc(flight, func(before *request) bool { return !q.Start.Before(before.End) })
			for _, before := range flight {
				if before.ID == q.ID || c.oneLane(w, before, q) {
					c.broken(Policy, w.id, q.ID, "its request at %s arrived while one for %q was in flight until %s", clock(q.Start), before.ID, clock(before.End))
					break
				}
			}
			if limit := c.most(&w.rules, q.Start, (*setting).MaxInFlightOr); len(flight) >= limit && limit > 1 {
				c.broken(Policy, w.id, q.ID, "its request at %s arrived while %d others were in flight, of %d in all", clock(q.Start), len(flight), limit)
			}
			if q.Status > 0 {
				flight = append(flight, q)
			}
		}
	})
}

// oneLane says whether two requests must not be in flight together.
func (c *checker) oneLane(w *webhook, a, b *request) bool {
	return c.always(&w.rules, b.Start, b.Start, func(s *setting) bool {
		return s.MaxInFlightOr() == 1 || s.byKey() && a.chain != nil && b.chain != nil && a.chain.event.PartitionKey == b.chain.event.PartitionKey
	})
}
