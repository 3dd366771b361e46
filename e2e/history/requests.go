package history

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// checkRequests: each attempt record that has an answer has a request that got
// it. What requests are left over repeat an attempt whose outcome an incident
// took away.
func (c *checker) checkRequests() {
	c.each(func(w *webhook) {
		byID := map[string][]*request{}
		var ids []string
		for _, q := range w.requests {
			if byID[q.ID] == nil {
				ids = append(ids, q.ID)
			}
			byID[q.ID] = append(byID[q.ID], q)
		}
		for _, ch := range w.chains {
			if byID[ch.event.ID] == nil && len(ch.attempts) > 0 {
				byID[ch.event.ID] = []*request{}
				ids = append(ids, ch.event.ID)
			}
		}
		for _, id := range ids {
			c.checkRequestsOf(w, id, byID[id])
		}
	})
}

// checkRequestsOf takes all events with one id together: their requests look the
// same from outside.
func (c *checker) checkRequestsOf(w *webhook, id string, requests []*request) {
	chains := w.alive(id)
	if len(chains) == 0 {
		c.broken(OneChain, w.id, id, "%d requests for an event that is not in the topic", len(requests))
		return
	}
	var log []*Attempt
	for _, ch := range chains {
		log = append(log, ch.requests()...)
	}
	c.match(log, requests)
	for _, a := range log {
		if a.Status > 0 && !logged(requests, a) {
			c.broken(NothingLost, w.id, id, "the log has attempt %d from %s to %s, answered with %d; no such request arrived", a.Number, clock(a.Started), clock(a.ended()), a.Status)
		}
	}
	for _, q := range requests {
		if !bodyOfOne(q, chains) {
			c.broken(SameBytes, w.id, id, "the request at %s has another body", clock(q.Start))
		}
		if q.logged == nil {
			c.checkRepeat(w, id, q, chains)
		}
	}
	if len(chains) == 1 && len(requests) > 0 {
		chains[0].firstAt = requests[0]
	}
	for _, q := range requests {
		switch {
		case len(chains) == 1:
			q.chain = chains[0]
		case q.logged != nil:
			q.chain = c.chains[q.logged.Source]
		}
	}
}

// requests are the attempts that a request belongs to: one of each number, since
// a number that is repeated has been noticed already.
func (ch *chain) requests() []*Attempt {
	var out []*Attempt
	seen := map[int]bool{0: true}
	for i := range ch.attempts {
		if a := &ch.attempts[i]; !seen[a.Number] {
			seen[a.Number] = true
			out = append(out, a)
		}
	}
	return out
}

// alive are the events with an id, without those that were moved on.
func (w *webhook) alive(id string) []*chain {
	var out []*chain
	for _, ch := range w.byID[id] {
		if ch.movedTo == nil {
			out = append(out, ch)
		}
	}
	return out
}

// match finds the request of each attempt record: of the same number, with the
// same answer, arrived while the attempt went on. Those that know of no answer take
// what the others leave.
func (c *checker) match(log []*Attempt, requests []*request) {
	for _, answered := range []bool{true, false} {
		for _, a := range log {
			if a.Status > 0 != answered {
				continue
			}
			for _, q := range requests {
				if q.logged == nil && q.Attempt == a.Number && (!answered || q.Status == a.Status) && c.within(q, a) {
					q.logged = a
					break
				}
			}
		}
	}
}

func (c *checker) within(q *request, a *Attempt) bool {
	return !q.Start.Before(a.Started.Add(-c.Slack)) && !q.Start.After(a.ended().Add(c.Slack+rounding))
}

// rounding is what the log's times, each cut to milliseconds, can lose.
const rounding = 3 * time.Millisecond

func logged(requests []*request, a *Attempt) bool {
	for _, q := range requests {
		if q.logged == a {
			return true
		}
	}
	return false
}

func bodyOfOne(q *request, chains []*chain) bool {
	for _, ch := range chains {
		if q.Value == ch.event.Value.asBody() {
			return true
		}
	}
	return false
}

// checkRepeat: a request that the log doesn't tell of has the number of one that
// it does tell of, or the next, and was in flight or not committed at an incident.
func (c *checker) checkRepeat(w *webhook, id string, q *request, chains []*chain) {
	most := 0
	for _, ch := range chains {
		n := ch.tried()
		if end := ch.end(); end == nil || end.Number == 0 {
			n++
		}
		most = max(most, n)
	}
	incident := c.explained(q)
	switch {
	case q.Attempt < 1 || q.Attempt > most:
		c.broken(OneChain, w.id, id, "the request at %s carries attempt number %d, which the log allows up to %d", clock(q.Start), q.Attempt, most)
	case incident == nil:
		c.broken(Repeats, w.id, id, "the request at %s, attempt %d, is not in the log, and no incident explains it", clock(q.Start), q.Attempt)
	case incident.Most > 0 && c.explains[incident] == incident.Most:
		c.broken(Repeats, w.id, id, "the request at %s, attempt %d, is not in the log, and the %s of %s at %s explains %d others already",
			clock(q.Start), q.Attempt, incident.Kind, incident.Instance, clock(incident.From), incident.Most)
	default:
		c.report.Extra++
		c.report.Explained[incident.Kind]++
		c.explains[incident]++
	}
}

// explained is the incident that explains a request: it was in flight then, or had
// ended so shortly before that its outcome may not have been committed. Nil: none.
func (c *checker) explained(q *request) *Incident {
	number := c.webhook(q.Webhook).number()
	for n := range c.Incidents {
		i := &c.Incidents[n]
		if i.Numbers != nil && !slices.Contains(i.Numbers, number) || q.Start.After(i.To.Add(c.Slack)) {
			continue
		}
		if i.Resumed {
			if !q.Start.Before(i.From.Add(-c.Slack)) {
				return i
			}
			continue
		}
		uncommitted := i.Uncommitted
		if uncommitted == 0 {
			uncommitted = c.uncommitted()
		}
		if q.End.IsZero() || !q.End.Before(i.From.Add(-uncommitted-c.Slack)) {
			return i
		}
	}
	return nil
}

// checkDueTimes: a retry is due when the policy says, and starts not before.
func (c *checker) checkDueTimes() {
	c.each(func(w *webhook) {
		for _, ch := range w.chains {
			for _, a := range ch.attempts {
				if a.Number > 1 && a.Started.Before(a.DueAt) {
					c.brokenFor(ch, OnTime, "attempt %d started at %s, and was due at %s", a.Number, clock(a.Started), clock(a.DueAt))
				}
				if a.Outcome == record.Failed {
					c.checkDelay(ch, a)
				}
			}
		}
		for _, q := range w.requests {
			if due, ok := w.dueOf(q); ok && q.Start.Before(due) {
				c.broken(OnTime, w.id, q.ID, "the request at %s, attempt %d, was due at %s", clock(q.Start), q.Attempt, clock(due))
			}
		}
	})
}

func (c *checker) checkDelay(ch *chain, a Attempt) {
	least, most := c.rules(ch.event.Webhook).Delay(a.Number)
	switch delay := a.NextDueAt.Sub(a.ended()); {
	case a.NextDueAt.IsZero() && a.Next == record.NextParked: // it goes when the webhook does
	case delay < least:
		c.brokenFor(ch, Policy, "attempt %d ended at %s and the next is due %s later, the policy has at least %s", a.Number, clock(a.ended()), delay, least)
	case delay > most+c.Slack+rounding:
		c.brokenFor(ch, Policy, "attempt %d ended at %s and the next is due %s later, the policy has at most %s", a.Number, clock(a.ended()), delay, most)
	}
}

// dueOf is before when a request, repeated or not, must not arrive: the due time
// in the retry record that it came from. Of copies it is the earliest, since nobody can
// tell whose it was.
func (w *webhook) dueOf(q *request) (due time.Time, ok bool) {
	for _, ch := range w.alive(q.ID) {
		retried := false
		for _, x := range ch.waiting {
			if x.Tier > 0 && x.Attempts == q.Attempt-1 && !retried {
				retried = true
				if !ok || x.DueAt.Before(due) {
					due, ok = x.DueAt, true
				}
			}
		}
		if !retried {
			return time.Time{}, false // it may have come from anywhere
		}
	}
	return due, ok
}
