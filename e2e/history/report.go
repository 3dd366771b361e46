package history

import (
	"fmt"
	"strings"
)

// Promise is what a violation broke.
type Promise string

// The promises, as the documentation numbers and words them.
const (
	NothingLost Promise = "nothing is lost"
	OneChain    Promise = "one chain per event"
	Repeats     Promise = "requests repeat only after an incident"
	Order       Promise = "first attempts go out in order"
	Strict      Promise = "in strict order nothing overtakes"
	Once        Promise = "a second copy is not delivered"
	OnTime      Promise = "never before the due time"
	Policy      Promise = "exactly the policy"
	Pauses      Promise = "paused means no request"
	SameBytes   Promise = "what is sent is what was produced"
)

// Violation is one broken promise.
type Violation struct {
	Promise Promise
	Webhook string
	ID      string   // of the event; empty when it is about the webhook
	Text    string   // what is wrong
	Story   []string // everything known about the event or webhook, by time
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: webhook %q", v.Promise, v.Webhook)
	if v.ID != "" {
		fmt.Fprintf(&b, ", event %q", v.ID)
	}
	fmt.Fprintf(&b, ": %s", v.Text)
	for _, line := range v.Story {
		fmt.Fprintf(&b, "\n    %s", line)
	}
	return b.String()
}

// Report is what Check found.
type Report struct {
	Violations []Violation
	// Events counts the events by how they ended: an outcome, or "waiting".
	Events map[string]int
	// Requests is how many there were; Extra is how many of them were repeated,
	// with an incident to explain them.
	Requests, Extra int
	// Explained counts the repeated ones by the kind of their incident.
	Explained map[string]int
	// Lateness is how long after their due times the retries started.
	Lateness Distribution
}

// shown is how many violations an error tells in full: the first few say what is
// wrong, thousands of them hide it.
const shown = 5

// Err is nil when every promise was kept.
func (r Report) Err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return &brokenError{r.Violations}
}

type brokenError struct{ violations []Violation }

func (e *brokenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d promises broken", len(e.violations))
	for i, v := range e.violations {
		if i == shown {
			fmt.Fprintf(&b, "\n... and %d more", len(e.violations)-shown)
			break
		}
		fmt.Fprintf(&b, "\n%s", v)
	}
	return b.String()
}

func (r Report) String() string {
	return fmt.Sprintf("%d violations; events %v; %d requests, %d of them repeated; %d retries, late by p50 %s, p99 %s, p99.9 %s, at most %s",
		len(r.Violations), r.Events, r.Requests, r.Extra,
		r.Lateness.Count, r.Lateness.P50, r.Lateness.P99, r.Lateness.P999, r.Lateness.Max)
}
