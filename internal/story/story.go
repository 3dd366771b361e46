package story

import (
	"cmp"
	"slices"

	"github.com/reenvio/reenvio/internal/record"
)

// Story is what the topics say of one event. Its JSON is what programs read of `reenvio events get`.
type Story struct {
	Webhook string `json:"webhook"`
	EventID string `json:"event_id"`
	Number  int32  `json:"partition"` // in every topic
	// Copies are the event's records on the events topic, oldest first: one, and one more for each redrive, and for each time that a producer has
	// sent the same id again. Each goes its own way.
	Copies []Copy `json:"copies"`
	// Earlier counts copies before those, which are not told: see maxCopies.
	Earlier int `json:"earlier_copies,omitempty"`
	// State is the webhook's; nil when it is simply healthy.
	State *record.State `json:"state,omitempty"`
	// Holds are those by hand of the whole number, whichever webhooks they concern.
	Holds []record.Hold `json:"holds,omitempty"`
	// Incomplete are topics whose last records an open transaction hides.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Newest is the copy that was written last; nil when there is none.
func (s *Story) Newest() *Copy {
	if len(s.Copies) == 0 {
		return nil
	}
	return &s.Copies[len(s.Copies)-1]
}

// At is the copy whose record on the events topic lies at a place; nil when nothing is known of it.
func (s *Story) At(source record.Source) *Copy {
	if i := slices.IndexFunc(s.Copies, func(c Copy) bool { return c.Source == source }); i >= 0 {
		return &s.Copies[i]
	}
	return nil
}

// Status is where a copy of an event is, from a closed set.
type Status string

// Where it can be.
const (
	Queued    Status = "queued"    // on the events topic: waits for its first attempt, or is in flight
	Waiting   Status = "waiting"   // in a delay topic, until its next attempt
	Parked    Status = "parked"    // held back
	Delivered Status = "delivered" // the end
	Dead      Status = "dead"      // the end
	Duplicate Status = "duplicate" // the end: an equal one was delivered before
	Filtered  Status = "filtered"  // the end: the webhook's own filter said no
	// Ended: nothing of it waits, and no record says how that came. Its delivery was not logged (attempts.successes), or retention has taken the
	// records.
	Ended Status = "ended"
)

// Over says whether nothing more happens to it.
func (s Status) Over() bool {
	switch s {
	case Delivered, Dead, Duplicate, Filtered, Ended:
		return true
	case Queued, Waiting, Parked:
	}
	return false
}

// Copy is one record on the events topic, and what became of it.
type Copy struct {
	Source     record.Source  `json:"source"`
	MovedFrom  *record.Source `json:"moved_from,omitempty"` // where it was written, when that was the wrong partition
	Redrive    string         `json:"redrive,omitempty"`    // run/count, when it was sent again from a dead letter
	EventType  string         `json:"event_type,omitempty"`
	ProducedAt record.Time    `json:"produced_at,omitzero"`
	Bytes      int            `json:"bytes,omitempty"` // of the body
	Status     Status         `json:"status"`
	Steps      []Step         `json:"steps"`
}

// Last is the newest step of a kind; nil when there is none.
func (c *Copy) Last(kind Kind) *Step {
	for i := range slices.Backward(c.Steps) {
		if c.Steps[i].Kind == kind {
			return &c.Steps[i]
		}
	}
	return nil
}

// Kind is what a step is, from a closed set.
type Kind string

// The kinds of steps.
const (
	StepQueued  Kind = "queued"
	StepAttempt Kind = "attempt" // one request, or an end without one (attempt 0)
	StepWaiting Kind = "waiting"
	StepParked  Kind = "parked"
	StepDead    Kind = "dead"
)

// Step is one thing that happened to a copy. The fields of an attempt are those of the attempt record.
type Step struct {
	Kind Kind        `json:"step"`
	At   record.Time `json:"at,omitzero"`
	// Place is where the record lies that says so.
	Place record.Source `json:"place"`
	// Open says that the event is there now.
	Open bool `json:"open,omitempty"`
	// Times counts how often it has happened: a long wait hops from delay topic to delay topic, and the last hop is told.
	Times int `json:"times,omitempty"`

	// Attempt is which attempt it was; elsewhere, how many had been made.
	Attempt       int            `json:"attempt"`
	Outcome       record.Outcome `json:"outcome,omitempty"`
	Next          record.Next    `json:"next,omitempty"`
	HTTPStatus    int            `json:"status,omitempty"`
	Error         string         `json:"error,omitempty"`
	DurationMS    *int64         `json:"duration_ms,omitempty"`
	URLHost       string         `json:"url_host,omitempty"`
	NextAttemptAt record.Time    `json:"next_attempt_at,omitzero"`

	DueAt   record.Time `json:"due_at,omitzero"`   // waiting until then
	Reason  string      `json:"reason,omitempty"`  // parked or dead: why
	Message string      `json:"message,omitempty"` // dead: what happened, in a sentence
}

// order is that in which things happen to an event. The number of attempts made decides, and only among equals the time: records are stamped by the
// clocks of several machines.
func (s *Step) order(t *Step) int {
	return cmp.Or(cmp.Compare(s.phase(), t.phase()), cmp.Compare(s.Attempt, t.Attempt), cmp.Compare(s.rank(), t.rank()), s.At.Compare(t.At.Time))
}

func (s *Step) phase() int {
	switch {
	case s.Kind == StepQueued:
		return 0
	case s.Kind == StepDead, s.Kind == StepAttempt && s.Attempt == 0:
		return 2
	}
	return 1
}

func (s *Step) rank() int {
	if s.Kind == StepAttempt {
		return 0
	}
	return 1
}

// settle puts the steps in order and says where the copy is. open says whether a record has still to be dealt with.
func (c *Copy) settle(open func(*Step) bool) {
	slices.SortStableFunc(c.Steps, func(a, b Step) int { return a.order(&b) })
	if c.Last(StepDead) != nil { // it says all that the record of an end without a request does
		c.Steps = slices.DeleteFunc(c.Steps, func(s Step) bool { return s.Kind == StepAttempt && s.Attempt == 0 })
	}
	c.Status = Ended
	var place *Step
	for i := range c.Steps {
		s := &c.Steps[i]
		s.Open = false
		switch {
		case s.Kind == StepDead:
			c.Status = Dead
		case s.Kind == StepAttempt && s.Outcome != record.Failed:
			c.Status = Status(s.Outcome)
		case s.Kind != StepAttempt:
			place = s
		}
	}
	if c.Status != Ended || place == nil || !open(place) {
		return
	}
	place.Open = true
	c.Status = map[Kind]Status{StepQueued: Queued, StepWaiting: Waiting, StepParked: Parked}[place.Kind]
}
