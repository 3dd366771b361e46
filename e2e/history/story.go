package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// told is how many lines of a story are told: one event has a few dozen, a
// webhook can have thousands.
const told = 80

// line is one thing that happened.
type line struct {
	at   time.Time
	text string
}

// story is everything known about an event, or about a webhook where the id is
// empty, by time.
func (c *checker) story(webhook, id string) []string {
	w := c.webhooks[webhook]
	var lines []line
	add := func(at time.Time, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	for _, i := range c.Incidents {
		add(i.From, "%s of %s until %s", i.Kind, i.Instance, clock(i.To))
	}
	if w != nil {
		w.tell(add)
		for _, ch := range w.chains {
			if ch.event.ID == id {
				ch.tell(add)
			}
		}
		for _, q := range w.requests {
			if q.ID == id {
				add(q.Start, "request, attempt %d, arrives; %s", q.Attempt, q.how())
			}
		}
		for _, a := range w.attempts {
			if id == "" {
				a.tell(add)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var out []string
	for i, l := range lines {
		if i == told {
			out = append(out, fmt.Sprintf("... and %d lines more", len(lines)-told))
			break
		}
		out = append(out, clock(l.at)+" "+l.text)
	}
	return out
}

type teller func(at time.Time, format string, args ...any)

func (w *webhook) tell(add teller) {
	for _, s := range w.states {
		add(s.Written, "state at %s: paused for %v, streak %d, parked %s", s.Place, s.Reasons, s.Streak, parkedText(s))
	}
	for _, a := range w.acts {
		add(a.Written, "command %s at %s: %s", a.ID, a.Place, cmp.Or(string(a.Action), string(a.Result)))
	}
}

func parkedText(s State) string {
	if s.Parked == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d from %d to %d without %v", s.Parked.Count, s.Parked.From, s.Parked.Last, s.Parked.Done)
}

func (ch *chain) tell(add teller) {
	e := ch.event
	add(e.Written, "event at %s, value %s", e.Place, e.Value)
	for _, a := range ch.attempts {
		a.tell(add)
	}
	for _, x := range ch.waiting {
		add(x.Written, "waits at %s after %d attempts, due %s %s", x.Place, x.Attempts, clock(x.DueAt), x.Reason)
	}
	for _, d := range ch.dead {
		add(d.Written, "dead letter at %s after %d attempts: %s", d.Place, d.Attempts, d.Reason)
	}
}

func (a Attempt) tell(add teller) {
	at := a.Started
	if a.Number == 0 {
		at = a.Written
	}
	add(at, "log at %s: %q attempt %d by %s took %s: status %d %s: %s, next %s %s",
		a.Place, a.ID, a.Number, a.Dispatcher, a.Duration, a.Status, a.Error, a.Outcome, a.Next, dueText(a.NextDueAt))
}

func dueText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t)
}

func (q *request) how() string {
	if q.End.IsZero() {
		return "still going on"
	}
	return fmt.Sprintf("answered %d at %s", q.Status, clock(q.End))
}
