package history

import (
	"slices"

	"github.com/reenvio/reenvio/internal/record"
)

// checkSent: what was acknowledged is in the topic, as it was sent.
func (c *checker) checkSent() {
	for _, s := range c.Sent {
		ch := c.chains[s.Source]
		switch {
		case ch == nil:
			c.broken(NothingLost, s.Webhook, s.ID, "Kafka acknowledged the event at %s, where there is none now", s.Source)
		case ch.event.Webhook != s.Webhook, s.ID != "" && ch.event.ID != s.ID, ch.event.Value != s.Value:
			c.broken(SameBytes, s.Webhook, s.ID, "at %s lies %q of webhook %q with value %s, not the value %s that was sent",
				s.Source, ch.event.ID, ch.event.Webhook, ch.event.Value, s.Value)
		}
	}
}

// checkMoves: an event in the wrong partition is moved once, whole, and then
// lives at its new place only.
func (c *checker) checkMoves() {
	for _, ch := range c.ordered {
		if ch.event.Moved == nil {
			continue
		}
		first := c.chains[*ch.event.Moved]
		switch {
		case first == nil:
			c.brokenFor(ch, OneChain, "it was moved from %s, where there is no event", ch.event.Moved)
			continue
		case first.movedTo != nil:
			c.brokenFor(ch, OneChain, "it was moved twice, to %s and to %s", first.movedTo.event.Place, ch.event.Place)
		case first.event.Value != ch.event.Value || first.event.Headers != ch.event.Headers:
			c.brokenFor(ch, SameBytes, "its copy at %s has another value or other headers", ch.event.Place)
		}
		first.movedTo = ch
		if len(first.attempts)+len(first.waiting)+len(first.dead) > 0 {
			c.brokenFor(ch, OneChain, "it was moved to %s, and handled at its first place too", ch.event.Place)
		}
	}
}

// checkEnds: every event is finished exactly once, or it still waits somewhere.
func (c *checker) checkEnds() {
	parked := map[string]int64{} // by webhook
	for _, ch := range c.ordered {
		if ch.movedTo != nil {
			continue
		}
		switch end := ch.end(); {
		case end == nil:
			if c.checkUnfinished(ch) {
				parked[ch.event.Webhook]++
			}
		case end != &ch.attempts[len(ch.attempts)-1]:
			c.brokenFor(ch, OneChain, "it was %s at %s, and went on", end.Outcome, end.Place)
		}
	}
	c.checkParkedCount(parked)
}

// checkUnfinished tells whether the event is parked.
func (c *checker) checkUnfinished(ch *chain) (parked bool) {
	w := c.webhook(ch.event.Webhook)
	last := ch.event.Place
	if n := len(ch.waiting); n > 0 {
		last, parked = ch.waiting[n-1].Place, ch.waiting[n-1].Tier == 0
	}
	done, committed := c.Topics.Committed[Partition{last.Topic, last.Partition}]
	switch {
	case c.Final && !w.heldNow() && (!w.pausedNow() || !parked):
		c.brokenFor(ch, NothingLost, "the run is over, and it was neither finished nor parked for a paused webhook; its last record lies at %s", last)
	case parked && !w.knowsParked(last.Offset):
		c.brokenFor(ch, NothingLost, "it waits at %s, where the webhook's state has nothing parked any more", last)
	case !parked && committed && last.Offset < done:
		c.brokenFor(ch, NothingLost, "its last record lies at %s; the group has finished that partition up to %d, and nothing followed", last, done)
	}
	return parked
}

// pausedNow says whether the last state is a pause.
func (w *webhook) pausedNow() bool { return len(w.states) > 0 && w.states[len(w.states)-1].paused() }

// knowsParked says whether the last state counts a record of the parked topic
// among those that wait. It may lie beyond the state's last: that is learned when
// the record has its place, and a crash can come before it is written.
func (w *webhook) knowsParked(offset int64) bool {
	if len(w.states) == 0 {
		return false
	}
	p := w.states[len(w.states)-1].Parked
	return p != nil && offset >= p.From && !slices.Contains(p.Done, offset)
}

// checkParkedCount: as many events of a webhook are parked as its state says.
func (c *checker) checkParkedCount(parked map[string]int64) {
	c.each(func(w *webhook) {
		var count int64
		if n := len(w.states); n > 0 && w.states[n-1].Parked != nil {
			count = w.states[n-1].Parked.Count
		}
		if count != parked[w.id] {
			c.broken(NothingLost, w.id, "", "its state counts %d parked events, and %d are", count, parked[w.id])
		}
	})
}

// checkDead: an event is in the DLQ exactly when its end says so, once, as it
// was produced.
func (c *checker) checkDead() {
	for _, ch := range c.ordered {
		end := ch.end()
		died := end != nil && end.Outcome == record.Dead
		switch {
		case died && len(ch.dead) == 0:
			c.brokenFor(ch, NothingLost, "it died and is not in the DLQ")
		case !died && len(ch.dead) > 0:
			c.brokenFor(ch, OneChain, "it is in the DLQ at %s, and its attempts don't say that it died", ch.dead[0].Place)
		case len(ch.dead) > 1:
			c.brokenFor(ch, OneChain, "it is in the DLQ %d times", len(ch.dead))
		}
		for _, d := range ch.dead {
			if d.Value != ch.event.Value || !d.Cut && d.Headers != ch.event.Headers {
				c.brokenFor(ch, SameBytes, "its dead letter at %s has another value or other headers", d.Place)
			}
			if d.Attempts != ch.tried() {
				c.brokenFor(ch, OneChain, "its dead letter says %d attempts, the log has %d", d.Attempts, ch.tried())
			}
			if limit, early := c.diedEarly(ch); d.Reason == record.AttemptsExhausted && early {
				c.brokenFor(ch, Policy, "it died of %s after %d of %d", d.Reason, d.Attempts, limit)
			}
		}
	}
}

// diedEarly: whether an event was tried less often than every configuration allows that
// its last attempt can have gone by.
func (c *checker) diedEarly(ch *chain) (limit int, early bool) {
	last, tried := ch.lastTry()
	if !tried {
		return 0, true
	}
	rules := c.rules(ch.event.Webhook)
	return c.most(&rules, last.Started, (*setting).MaxAttemptsOr), c.always(&rules, last.Started, last.Started, func(s *setting) bool {
		return last.Number < s.MaxAttemptsOr()
	})
}
