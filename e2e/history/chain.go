package history

import (
	"net/http"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// checkNumbers: the log has attempts 1, 2, ... of an event, each once and in this
// order, and each says what its status means.
func (c *checker) checkNumbers() {
	for _, ch := range c.ordered {
		n := 0
		for _, a := range ch.attempts {
			switch {
			case a.Number == 0 && a.terminal() && a.Outcome != record.Delivered:
				continue // ended without a request
			case a.Number != n+1:
				c.brokenFor(ch, OneChain, "attempt %d at %s follows attempt %d", a.Number, a.Place, n)
			}
			n = a.Number
			c.checkOutcome(ch, a)
		}
	}
}

func (c *checker) checkOutcome(ch *chain, a Attempt) {
	rules := c.rules(ch.event.Webhook)
	limit := c.most(&rules, a.Started, (*setting).MaxAttemptsOr)
	last := a.Number >= limit
	switch {
	case a.Number > limit && len(rules.Changes) == 0: // else the limit was lowered meanwhile, and this one is the last
		c.brokenFor(ch, Policy, "attempt %d is one of %d", a.Number, limit)
	case succeeded(a.Status) != (a.Outcome == record.Delivered):
		c.brokenFor(ch, Policy, "attempt %d was answered %d and counts as %s", a.Number, a.Status, a.Outcome)
	case a.Outcome == record.Failed && last:
		c.brokenFor(ch, Policy, "attempt %d was the last and is to be followed by another", a.Number)
	case (a.Outcome == record.Failed) != (a.Next == record.NextRetry || a.Next == record.NextParked):
		c.brokenFor(ch, OneChain, "attempt %d is %s, and next is %s", a.Number, a.Outcome, a.Next)
	}
}

func succeeded(status int) bool {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return true
	}
	return false
}

// checkWaiting: every failed attempt left one record to wait in, where it said,
// and no record waits for an attempt that the log doesn't know of.
func (c *checker) checkWaiting() {
	for _, ch := range c.ordered {
		for _, x := range ch.waiting {
			if x.Value != ch.event.Value || x.Headers != ch.event.Headers {
				c.brokenFor(ch, SameBytes, "its record at %s has another value or other headers", x.Place)
			}
			if x.Attempts > 0 && ch.failed(x.Attempts) == nil || x.Attempts == 0 && x.Tier > 0 {
				c.brokenFor(ch, OneChain, "the record at %s waits after attempt %d, which did not fail or is not in the log", x.Place, x.Attempts)
			}
		}
		for i := range ch.attempts {
			if a := &ch.attempts[i]; a.Outcome == record.Failed {
				c.checkLeft(ch, a)
			}
		}
		c.checkParkedOnce(ch)
	}
}

// failed is the log's record that attempt n failed and is to be followed.
func (ch *chain) failed(n int) *Attempt {
	for i := range ch.attempts {
		if a := &ch.attempts[i]; a.Number == n && a.Outcome == record.Failed {
			return a
		}
	}
	return nil
}

// checkLeft: one retry record with the attempt's own due time, and further ones
// only as hops; or one parked record and none.
func (c *checker) checkLeft(ch *chain, a *Attempt) {
	var before *Waiting
	parked := false
	for i := range ch.waiting {
		x := &ch.waiting[i]
		switch {
		case x.Attempts != a.Number:
			continue
		case x.Tier == 0:
			parked = true
			continue
		case a.Next == record.NextParked:
			c.brokenFor(ch, OneChain, "attempt %d was to be parked, and there is a retry record at %s", a.Number, x.Place)
		case before == nil && !x.DueAt.Equal(a.NextDueAt):
			c.brokenFor(ch, OneChain, "after attempt %d the next is due at %s, and the record at %s says %s", a.Number, clock(a.NextDueAt), x.Place, clock(x.DueAt))
		case before != nil && !c.isHop(*before, *x):
			c.brokenFor(ch, OneChain, "attempt %d left two retry records, at %s and at %s, and the second is no hop of the first", a.Number, before.Place, x.Place)
		}
		before = x
	}
	switch {
	case a.Next == record.NextRetry && before == nil:
		c.brokenFor(ch, NothingLost, "attempt %d was to be retried and left no retry record", a.Number)
	case a.Next == record.NextParked && !parked:
		c.brokenFor(ch, NothingLost, "attempt %d was to be parked and left no parked record", a.Number)
	}
}

// isHop: a record whose wait is at least two of its tiers may leave after one of
// them, with the same due time.
func (c *checker) isHop(from, to Waiting) bool {
	return to.DueAt.Equal(from.DueAt) &&
		!from.DueAt.Before(from.Written.Add(2*from.Tier-c.Slack)) &&
		!to.Written.Before(from.Written.Add(from.Tier-c.Slack))
}

// checkParkedOnce: what is parked leaves by an attempt, so two parked records
// after the same attempt are two chains, unless the webhook was resumed or released between.
func (c *checker) checkParkedOnce(ch *chain) {
	last := map[int]Waiting{}
	for _, x := range ch.waiting {
		if x.Tier > 0 {
			continue
		}
		before, twice := last[x.Attempts]
		if twice && !c.webhook(ch.event.Webhook).freedBetween(before.Written, x.Written.Add(c.Slack)) {
			c.brokenFor(ch, OneChain, "it was parked twice after %d attempts, at %s and at %s", x.Attempts, before.Place, x.Place)
		}
		last[x.Attempts] = x
	}
}

// resumedBetween says whether a pause of the webhook may have ended within the
// time given, freedBetween whether a pause or a hold may.
func (w *webhook) resumedBetween(from, to time.Time) bool { return within(w.lifts, from, to) }

func (w *webhook) freedBetween(from, to time.Time) bool {
	return w.resumedBetween(from, to) || within(w.releases, from, to)
}

func within(lifts []lift, from, to time.Time) bool {
	for _, l := range lifts {
		if !l.to.Before(from) && !l.from.After(to) {
			return true
		}
	}
	return false
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
