package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// findHolds finds when a webhook was held by hand, by its own state or by its
// number's, and when it may have been released.
func (c *checker) findHolds(w *webhook) {
	of := func(h record.Hold) bool { return h.Concerns(w.rules.Tenant, w.rules.Host) }
	var number []Act
	for _, a := range c.webhook(record.NumberKey).acts {
		if a.Place.Partition == w.number() && (a.Action == "" || of(record.Hold{Scope: a.Scope, Value: a.Value})) {
			number = append(number, a)
		}
	}
	w.releases = slices.Concat(answered(w.acts, record.ActionRelease), answered(number, record.ActionRelease))
	slices.SortFunc(w.releases, func(a, b lift) int { return a.from.Compare(b.from) })
	for _, s := range w.states {
		if s.Held {
			w.holds = append(w.holds, w.heldFrom(s.Written, answered(w.acts, record.ActionRelease), "its state is held"))
		}
	}
	for _, s := range c.Topics.Numbers {
		for _, h := range s.Holds {
			if s.Place.Partition == w.number() && of(h) {
				released := answered(slices.DeleteFunc(slices.Clone(number), func(a Act) bool {
					return a.Action != "" && (a.Scope != h.Scope || a.Value != h.Value)
				}), record.ActionRelease)
				w.holds = append(w.holds, w.heldFrom(s.Written, released, fmt.Sprintf("%s is held", &h)))
			}
		}
	}
}

// heldFrom is the time from a state that is held to the first release after it.
func (w *webhook) heldFrom(t time.Time, releases []lift, why string) pause {
	for _, l := range releases {
		if l.to.After(t) {
			return pause{t, later(l.from, t), why}
		}
	}
	return pause{t, never, why}
}

// answered are the times within which commands of a kind took effect.
func answered(acts []Act, action record.Action) (all []lift) {
	asked := map[string]time.Time{}
	for _, a := range acts {
		at, known := asked[a.ID]
		switch {
		case a.Action == action && !known:
			asked[a.ID] = a.Written
		case a.Result == record.ResultDone && known:
			all = append(all, lift{at, a.Written})
		}
	}
	return all
}

// number is the webhook's partition number.
func (w *webhook) number() int32 {
	for _, ch := range w.chains {
		if ch.movedTo == nil {
			return ch.event.Place.Partition
		}
	}
	return -1
}

// heldNow says whether its last hold was not released.
func (w *webhook) heldNow() bool {
	return slices.ContainsFunc(w.holds, func(p pause) bool { return p.to.Equal(never) })
}

// isTest: the request of a test that a person asked for, whose event is in no topic.
func (c *checker) isTest(q Request) bool {
	return strings.HasPrefix(q.ID, "test_") && slices.ContainsFunc(c.Topics.Acts, func(a Act) bool {
		return a.Action == record.ActionTest && a.Webhook == q.Webhook && q.ID == fmt.Sprintf("test_%d_%d", a.Place.Partition, a.Place.Offset)
	})
}

// checkByHand: what died as discarded, a person has asked for; what died as expired,
// had expired; and nothing was tried after it had.
func (c *checker) checkByHand() {
	for _, ch := range c.ordered {
		for _, d := range ch.dead {
			switch {
			case d.Reason == record.Discarded && !c.askedFor(ch):
				c.brokenFor(ch, NothingLost, "it died as %s, and nobody has asked for that", d.Reason)
			case d.Reason == record.Expired && (ch.event.Expiry.IsZero() || d.Written.Before(ch.event.Expiry.Add(-c.Slack-rounding))):
				c.brokenFor(ch, NothingLost, "it died as %s at %s, and its time is %s", d.Reason, clock(d.Written), ch.event.Expiry)
			}
		}
		for _, a := range ch.attempts {
			if e := ch.event.Expiry; a.Number > 0 && !e.IsZero() && a.Started.After(e.Add(c.Slack+rounding)) {
				c.brokenFor(ch, Policy, "attempt %d started at %s, after its ce_expirytime %s", a.Number, clock(a.Started), clock(e))
			}
		}
	}
}

// askedFor: a command to discard what its webhook has parked, or to skip it.
func (c *checker) askedFor(ch *chain) bool {
	places := []string{ch.event.Place.String()}
	for _, x := range ch.waiting {
		places = append(places, x.Place.String())
	}
	return slices.ContainsFunc(c.Topics.Acts, func(a Act) bool {
		return a.Action == record.ActionDiscardParked && a.Webhook == ch.event.Webhook || a.Action == record.ActionSkip && slices.Contains(places, a.Value)
	})
}
