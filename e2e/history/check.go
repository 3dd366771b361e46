package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Check proves a history, or says where it breaks a promise.
func Check(h History) Report {
	c := newChecker(&h)
	for _, check := range []func(){
		c.checkSent, c.checkMoves, c.checkNumbers, c.checkEnds, c.checkWaiting, c.checkDead,
		c.checkRequests, c.checkOrder, c.checkStrict, c.checkInFlight, c.checkCopies, c.checkDueTimes, c.checkCommands, c.checkStreaks, c.checkPauses, c.checkByHand,
	} {
		check()
	}
	c.count()
	return c.report
}

// checker is a history by event and by webhook.
type checker struct {
	*History
	chains   map[record.Source]*chain
	ordered  []*chain // as the events topic has them, so that reports don't change from run to run
	webhooks map[string]*webhook
	names    []string // of the webhooks, in the order in which they appear
	// newestState is when the last record of the state topic was written.
	newestState time.Time
	explains    map[*Incident]int // how many requests
	report      Report
}

// chain is one event and everything that was written about it.
type chain struct {
	event    Event
	attempts []Attempt
	waiting  []Waiting // retry and parked records, as they were written
	dead     []Dead
	firstAt  *request // the first request that arrived for it
	movedTo  *chain   // its copy in the right partition
}

// tried is how many attempts the log has.
func (ch *chain) tried() int {
	n := 0
	for _, a := range ch.attempts {
		if a.Number > 0 {
			n++
		}
	}
	return n
}

// lastTry is the log's last attempt with a request.
func (ch *chain) lastTry() (last *Attempt, tried bool) {
	for i := range ch.attempts {
		if a := &ch.attempts[i]; a.Number > 0 {
			last = a
		}
	}
	return last, last != nil
}

// end is the record that finished the event, if any.
func (ch *chain) end() *Attempt {
	for i := range ch.attempts {
		if ch.attempts[i].terminal() {
			return &ch.attempts[i]
		}
	}
	return nil
}

// webhook is what happened to one webhook.
type webhook struct {
	id       string
	rules    Rules
	chains   []*chain            // in the order of the events topic
	byID     map[string][]*chain // an id can be sent twice
	ids      []string            // in the order in which they appear
	attempts []Attempt           // in the order of the log
	requests []*request          // in the order of arrival
	states   []State
	acts     []Act
	lifts    []lift
	pauses   []pause
	releases []lift  // of a hold that concerns it
	holds    []pause // by hand
}

// request is a request and the attempt record that tells of it.
type request struct {
	Request
	logged *Attempt
	chain  *chain // of the event; nil when it may be one of several
}

func newChecker(h *History) *checker {
	c := &checker{
		History: h,
		chains:  map[record.Source]*chain{}, webhooks: map[string]*webhook{}, explains: map[*Incident]int{},
		report: Report{Events: map[string]int{}, Explained: map[string]int{}, Requests: len(h.Requests)},
	}
	for _, e := range h.Topics.Events {
		ch := &chain{event: e}
		c.chains[e.Place] = ch
		c.ordered = append(c.ordered, ch)
		w := c.webhook(e.Webhook)
		w.chains = append(w.chains, ch)
		if w.byID[e.ID] == nil {
			w.ids = append(w.ids, e.ID)
		}
		w.byID[e.ID] = append(w.byID[e.ID], ch)
	}
	for _, a := range h.Topics.Attempts {
		if ch := c.chainOf(a.Source, a.Webhook, a.ID, "attempt record", a.Place); ch != nil {
			ch.attempts = append(ch.attempts, a)
		}
		w := c.webhook(a.Webhook)
		w.attempts = append(w.attempts, a)
	}
	for _, x := range h.Topics.Waiting {
		if ch := c.chainOf(x.Source, x.Webhook, x.ID, "waiting record", x.Place); ch != nil {
			ch.waiting = append(ch.waiting, x)
		}
	}
	for _, d := range h.Topics.Dead {
		if ch := c.chainOf(d.Source, d.Webhook, d.ID, "dead letter", d.Place); ch != nil {
			ch.dead = append(ch.dead, d)
		}
	}
	for _, s := range h.Topics.States {
		w := c.webhook(s.Webhook)
		w.states = append(w.states, s)
		c.newestState = later(c.newestState, s.Written)
	}
	for _, a := range h.Topics.Acts {
		w := c.webhook(a.Webhook)
		w.acts = append(w.acts, a)
	}
	for _, q := range h.Requests {
		if c.isTest(q) {
			continue
		}
		w := c.webhook(q.Webhook)
		w.requests = append(w.requests, &request{Request: q})
	}
	for _, ch := range c.ordered {
		slices.SortStableFunc(ch.waiting, byProgress)
	}
	c.each(func(w *webhook) {
		w.findLifts(c.uncommitted())
		c.findHolds(w)
	})
	return c
}

// byProgress orders the waiting records of one event, which come from several
// topics: the clock alone does not tell a retry record from the parked one that
// followed it within the same millisecond.
func byProgress(a, b Waiting) int {
	return cmp.Or(
		cmp.Compare(a.Attempts, b.Attempts),
		a.Written.Compare(b.Written),
		-cmp.Compare(a.Tier, b.Tier),
		cmp.Compare(a.Place.Offset, b.Place.Offset),
	)
}

func (c *checker) webhook(id string) *webhook {
	w := c.webhooks[id]
	if w == nil {
		w = &webhook{id: id, rules: c.rules(id), byID: map[string][]*chain{}}
		c.webhooks[id] = w
		c.names = append(c.names, id)
	}
	return w
}

// chainOf is the event that a record speaks of, in the record's own partition.
func (c *checker) chainOf(source record.Source, webhook, id, what string, place record.Source) *chain {
	ch := c.chains[source]
	switch {
	case ch == nil:
		c.broken(OneChain, webhook, id, "the %s at %s speaks of the event at %s, where there is none", what, place, source)
		return nil
	case ch.event.Webhook != webhook || ch.event.ID != id:
		c.broken(OneChain, webhook, id, "the %s at %s speaks of the event at %s, which is %q of webhook %q", what, place, source, ch.event.ID, ch.event.Webhook)
	case place.Partition != source.Partition:
		c.broken(OneChain, webhook, id, "the %s at %s is not in the partition of its event at %s", what, place, source)
	}
	return ch
}

// each goes through the webhooks in the order in which they appear.
func (c *checker) each(f func(*webhook)) {
	for _, id := range c.names {
		f(c.webhooks[id])
	}
}

// broken notes a violation; an empty id makes it one of the whole webhook.
func (c *checker) broken(p Promise, webhook, id, format string, args ...any) {
	v := Violation{Promise: p, Webhook: webhook, ID: id, Text: fmt.Sprintf(format, args...)}
	if len(c.report.Violations) < shown {
		v.Story = c.story(webhook, id)
	}
	c.report.Violations = append(c.report.Violations, v)
}

func (c *checker) brokenFor(ch *chain, p Promise, format string, args ...any) {
	c.broken(p, ch.event.Webhook, ch.event.ID, format, args...)
}

// count sums up the ends of the events and the lateness of their retries.
func (c *checker) count() {
	for _, ch := range c.ordered {
		switch end := ch.end(); {
		case ch.movedTo != nil: // counted there
		case end != nil:
			c.report.Events[string(end.Outcome)]++
		default:
			c.report.Events["waiting"]++
		}
	}
	var late []time.Duration
	for _, a := range c.Topics.Attempts {
		if a.Number > 1 && !a.DueAt.IsZero() {
			late = append(late, a.Started.Sub(a.DueAt))
		}
	}
	c.report.Lateness = distribution(late)
}
