// Package history proves that a run of the whole pipeline kept its promises.
//
// Producer, receivers and topics each record what happened; Check compares the
// records and names every promise that was broken, with the whole story of the
// event it was broken for. It knows the promises and nothing of how the
// dispatcher keeps them, so that a fault inside can't hide itself.
//
// What it refuses: to be lenient. An extra request is a violation unless an
// incident (a crash, a lost lease, a drain cut short) that the test itself
// caused explains it. What it can't know (whether a request that nobody answered
// arrived, in which order two clocks ticked) it leaves open in both directions,
// and says so where it does.
package history

import (
	"cmp"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// History is all that is known about one run.
type History struct {
	// Sent are the events whose producer got its acknowledgement.
	Sent []Sent
	// Requests are what the receivers saw, all of them. Those of one webhook must
	// be in the order of their arrival.
	Requests []Request
	// Topics is what Kafka holds at the end, by Collect.
	Topics Topics
	// Incidents are the times at which a request could be repeated.
	Incidents []Incident
	// Rules are the policy of each webhook by its id; Default is everybody else's.
	Rules   map[string]Rules
	Default Rules
	// Final says that the run came to its end: every event must be finished, but
	// for those of a webhook that is paused, which must be parked.
	Final bool
	// Slack is how far two clocks, or a request's start and its arrival, may be
	// apart; 0 inside a synctest bubble.
	Slack time.Duration
	// Uncommitted is how old an outcome may be that was not committed when an
	// incident began, where that does not say it itself; 0 means 2 s, the dispatcher's default max_uncommitted.
	Uncommitted time.Duration
	// Learning is how long after a configuration could be read an owner may still go by
	// the one before; 0 means 2 s.
	Learning time.Duration
	// Window is in what time a second copy of an event is not delivered again; 0 means
	// 10 min, the default of dedup.window.
	Window time.Duration
}

// Sent is an event as Kafka acknowledged it.
type Sent struct {
	Source  record.Source // where it was written
	Webhook string        // the key
	ID      string        // ce_id; empty when the event has none
	Value   Hash
}

// Request is one HTTP request as its receiver saw it.
type Request struct {
	Webhook, ID string
	Attempt     int // the number it carried
	// Start is its arrival; End is when it was answered or given up, zero when
	// it still goes on.
	Start, End time.Time
	Status     int // as answered; 0 when nothing was
	Value      Hash
}

// Incident is something that may cost requests to be made again: those in
// flight, and those whose outcome was not committed when it began.
type Incident struct {
	Kind     string // crash, lost lease, drain cut short
	Instance string // whose
	// From is when it began; To is when the last request begun before it had
	// ended or been cancelled (From for a crash).
	From, To time.Time
	// Numbers are those that it concerns; nil is all of them.
	Numbers []int32
	// Uncommitted is how old an outcome that it took away may have been; 0 is the
	// History's.
	Uncommitted time.Duration
	// Resumed is for a process that was stopped and goes on: it sends what it was
	// just about to send. Only a request that begins within the incident is of it.
	Resumed bool
	// Most is how many requests it can explain; 0 is any number.
	Most int
}

func (h *History) uncommitted() time.Duration {
	return cmp.Or(h.Uncommitted, 2*time.Second)
}

func (h *History) learning() time.Duration { return cmp.Or(h.Learning, 2*time.Second) }

func (h *History) window() time.Duration { return cmp.Or(h.Window, 10*time.Minute) }
