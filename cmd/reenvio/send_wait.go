package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
	"github.com/reenvio/reenvio/producer"
)

// lookPause is the wait between two looks at the topics: a dispatcher commits ten times a second.
const lookPause = 100 * time.Millisecond

// sentOutcome is what `send --wait` answers to a program: what send does, and what has become of the event.
type sentOutcome struct {
	producer.Published
	// Outcome is how it ended (delivered, dead), or pending when the time was up before.
	Outcome  story.Status `json:"outcome"`
	Attempts []story.Step `json:"attempts"`
	// Status is where it was at the last look, as a copy's in `events get`; NextStep is what there is to do about it.
	Status   story.Status `json:"status,omitempty"`
	NextStep string       `json:"next_step,omitempty"`
}

const outcomePending story.Status = "pending"

// sent follows one event that was just sent.
type sent struct {
	c        *cli
	watch    *story.Watch
	event    producer.Published
	endpoint record.Endpoint
	began    time.Time
	told     int    // attempts
	hitch    hitch  // as told last
	where    string // it was, at the last look, and what to do
	step     string // what to do

	orphaned func(context.Context) (bool, error)
	orphan   bool // at the last look
	looked   time.Time
}

// hitch is what keeps the event from being sent.
type hitch struct {
	paused       string
	held, parked bool
	orphan       bool
}

// await waits until the event is delivered or dead, or the time is up. What happens meanwhile is told to people.
func (s *sent) await(ctx context.Context, wait time.Duration, out format) error {
	people := s.c.stdout
	if out == formatJSON {
		people = s.c.stderr
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	last, err := s.follow(waiting, people)
	if err != nil && (waiting.Err() == nil || ctx.Err() != nil) { // anything but the time that is up
		return err
	}
	answer := sentOutcome{Published: s.event, Outcome: outcomePending, Attempts: []story.Step{}}
	if last != nil {
		answer.Attempts = append(answer.Attempts, attemptsOf(last)...)
		answer.Outcome, answer.Status = outcomeOf(last), last.Status
		if step, ok := strings.CutPrefix(s.step, todo); ok {
			answer.NextStep = step
		}
	}
	if out == formatJSON {
		if err := printJSON(s.c.stdout, answer); err != nil {
			return err
		}
	}
	if answer.Outcome == outcomePending {
		why := ""
		if s.hitch == (hitch{}) { // else it was told
			why = ": " + clean(s.where)
		}
		fmt.Fprintf(s.c.stderr, "Not delivered within %s%s.\n`reenvio events get %s --webhook %s` shows what becomes of it.\n",
			wait, why, quoted(s.event.ID), s.event.Webhook)
	}
	if answer.Outcome == outcomePending || answer.Outcome == story.Dead {
		return errNotDone
	}
	return nil
}

// follow looks again and again until it is over. It returns the event as it was seen last, nil when it was not yet, and what ended the looking.
func (s *sent) follow(ctx context.Context, people io.Writer) (last *story.Copy, err error) {
	source := record.Source{Topic: s.event.Topic, Partition: s.event.Partition, Offset: s.event.Offset}
	for {
		told, err := s.watch.Tell(ctx, s.event.ID)
		if err != nil {
			return last, err
		}
		if c := told.At(source); c != nil {
			last = c
			told.Holds = holdsOf(s.endpoint, told.Holds)
			if err := s.look(ctx, c); err != nil {
				return last, err
			}
			t := newTale(told, s.endpoint, time.Now())
			t.orphan = s.orphan
			s.tell(people, t, c)
			if c.Status.Over() {
				return last, nil
			}
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
}

// look asks every second whether the event's number has an owner, when it should have gone by then.
func (s *sent) look(ctx context.Context, c *story.Copy) (err error) {
	now := time.Now()
	if c.Status.Over() {
		s.orphan = false
		return nil
	}
	if now.Sub(s.began) < time.Second || now.Sub(s.looked) < time.Second {
		return nil
	}
	s.looked = now
	s.orphan, err = s.orphaned(ctx)
	return err
}

// tell says what is new.
func (s *sent) tell(people io.Writer, t tale, c *story.Copy) {
	attempts := attemptsOf(c)
	for ; s.told < len(attempts); s.told++ {
		fmt.Fprintln(people, clean(arrivedText(&attempts[s.told])))
	}
	where, next := t.where(c)
	s.where, s.step = where+". "+next, next
	now := hitch{held: t.view.held(), parked: c.Status == story.Parked, orphan: s.orphan}
	if t.view.State.Status == record.Paused {
		now.paused = statusText(t.view.State)
	}
	if c.Status == story.Queued && t.now.Sub(s.began) < time.Second {
		now = hitch{} // it will be parked in a moment
	}
	if !c.Status.Over() && (now == s.hitch || now == hitch{}) {
		s.hitch = now
		return
	}
	s.hitch = now
	if outcomeOf(c) == story.Delivered && c.Status == story.Ended {
		where = "delivered; the attempt is not recorded (attempts.successes)"
	}
	fmt.Fprintf(people, "%s of %s: %s.\n", clean(s.event.ID), s.event.Webhook, clean(where))
	if next != "" {
		fmt.Fprintf(people, "%s.\n", clean(next))
	}
}

// outcomeOf is how it ended. Of an event that was watched from its beginning, every end but one leaves a record: a delivery that is not to be
// recorded.
func outcomeOf(c *story.Copy) story.Status {
	switch {
	case c.Status == story.Ended:
		return story.Delivered
	case c.Status.Over():
		return c.Status
	}
	return outcomePending
}

func attemptsOf(c *story.Copy) []story.Step {
	return slices.DeleteFunc(slices.Clone(c.Steps), func(s story.Step) bool { return s.Kind != story.StepAttempt || s.Attempt == 0 })
}

// arrivedText is an attempt as it comes: "attempt 1: 500 after 12 ms, next in 2.1 s".
func arrivedText(s *story.Step) string {
	text := fmt.Sprintf("attempt %d: %s after %s", s.Attempt, stepAnswer(s), stepTook(s))
	switch s.Next {
	case record.NextRetry:
		text += ", next in " + span(s.NextAttemptAt.Sub(stepEnd(s)))
	case record.NextParked:
		text += ", parked"
	case record.NextNone:
	}
	return text
}
