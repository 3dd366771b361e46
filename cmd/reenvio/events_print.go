package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
)

// tale is a story in words.
type tale struct {
	story.Story
	view   webhookView
	now    time.Time
	orphan bool // its number has no owner
}

func newTale(told story.Story, endpoint record.Endpoint, now time.Time) tale {
	endpoint.ID = told.Webhook
	view := webhookView{Endpoint: endpoint, State: record.State{Webhook: told.Webhook, Status: record.Active}, Holds: told.Holds}
	if told.State != nil {
		view.State = *told.State
	}
	return tale{Story: told, view: view, now: now}
}

// printStory prints where the event is and what there is to do; then what happened, one table for each copy.
func (c *cli) printStory(t tale) error {
	where, next := t.where(t.Newest())
	fmt.Fprintf(c.stdout, "%s of %s: %s.\n", clean(t.EventID), t.Webhook, clean(where))
	if next != "" {
		fmt.Fprintf(c.stdout, "%s.\n", clean(next))
	}
	several := len(t.Copies) > 1
	if several {
		fmt.Fprintf(c.stdout, "It was sent %d times with this id. This is the newest copy.\n", len(t.Copies)+t.Earlier)
	}
	for i := range t.Copies {
		copied := &t.Copies[i]
		fmt.Fprintln(c.stdout)
		if several {
			where, _ := t.where(copied)
			fmt.Fprintf(c.stdout, "%s: %s.\n", copied.Source, clean(where))
		}
		var rows [][]string
		for j := range copied.Steps {
			step := &copied.Steps[j]
			rows = append(rows, []string{stamp(step.At), stepName(step), stepText(copied, step)})
		}
		if err := printTable(c.stdout, []string{"TIME", "WHAT", "MORE"}, rows); err != nil {
			return err
		}
	}
	return nil
}

// blocked says why the webhook is not sent to; empty when it is.
func (t tale) blocked() string {
	var texts []string
	if t.view.State.Status == record.Paused {
		texts = append(texts, statusText(t.view.State))
	}
	if h := t.view.State.Hold; h != nil {
		texts = append(texts, "held ("+heldText("webhook", *h)+")")
	}
	for _, h := range t.view.Holds {
		texts = append(texts, "held ("+heldText(h.String(), h)+")")
	}
	return strings.Join(texts, " and ")
}

// asked says how long the webhook wants to be left alone (Retry-After); empty when it doesn't.
func (t tale) asked() string {
	if until := t.view.State.HoldUntil; until.After(t.now) {
		return "its webhook has asked to be left alone until " + timeText(until)
	}
	return ""
}

// where says where a copy is, and what a person does about it; empty when it goes by itself.
func (t tale) where(c *story.Copy) (where, next string) {
	where, next = t.whereOf(c)
	if t.orphan && !c.Status.Over() && t.blocked() == "" {
		return where + fmt.Sprintf("; its number (%d) has no owner", t.Number), todo + "start a dispatcher (`reenvio dispatcher`); it goes by itself then"
	}
	return where, next
}

func (t tale) whereOf(c *story.Copy) (where, next string) {
	switch c.Status {
	case story.Queued:
		where = "queued, no attempt has ended yet"
		if why := t.blocked(); why != "" {
			return where + "; its webhook is " + why, t.next()
		}
		if asked := t.asked(); asked != "" {
			return where + "; " + asked, "It goes by itself after that, in its turn"
		}
		return where, fmt.Sprintf("It goes by itself in its turn; `reenvio status` shows what partition number %d waits for", t.Number)
	case story.Waiting:
		return t.waiting(c.Last(story.StepWaiting))
	case story.Parked:
		return t.parked(c.Last(story.StepParked))
	case story.Delivered:
		return delivered(c), ""
	case story.Dead:
		return t.dead(c.Last(story.StepDead))
	case story.Duplicate:
		return "not sent, since it is a duplicate: an event with its id was delivered shortly before", ""
	case story.Filtered:
		return "not sent, by the webhook's own filter", ""
	case story.Ended:
	}
	return "done, but no record says how: deliveries are not all recorded (attempts.successes), or the topics have let go of it", ""
}

func (t tale) next() string {
	step := t.view.nextStep()
	if step == "" {
		return todo + "`reenvio webhooks get " + t.Webhook + "` says why"
	}
	return todo + step
}

func (t tale) waiting(s *story.Step) (where, next string) {
	where = fmt.Sprintf("waits for attempt %d", s.Attempt+1)
	if in := s.DueAt.Sub(t.now); in >= 0 {
		where += fmt.Sprintf(", due in %s (at %s)", span(in), clock(s.DueAt.Time))
		next = "It goes by itself"
	} else {
		where += ", due now"
		if !s.DueAt.IsZero() {
			where = fmt.Sprintf("waits for attempt %d, due %s ago (at %s)", s.Attempt+1, span(-in), clock(s.DueAt.Time))
		}
		next = "It goes by itself; if it does not within seconds, `reenvio status` shows why"
	}
	if why := t.blocked(); why != "" {
		return where + "; its webhook is " + why + ", so it will be held back then", t.next()
	}
	if asked := t.asked(); asked != "" {
		return where + "; " + asked, "It goes by itself after that"
	}
	return where, next
}

func (t tale) parked(s *story.Step) (where, next string) {
	where = "parked since " + timeText(s.At)
	switch why := t.blocked(); {
	case why != "":
		return where + ": its webhook is " + why, t.next()
	case t.asked() != "":
		return where + ": " + t.asked(), "It goes by itself after that, in its turn: what is parked is sent in order"
	case s.Reason == string(record.ParkOverflow), s.Reason == string(record.ParkBehind):
		return where + ": its webhook had more waiting than it could take", "It goes by itself, in its turn"
	}
	return where + ", and its webhook is active again", "It goes by itself, in its turn: what is parked is sent in order"
}

func delivered(c *story.Copy) string {
	a := c.Last(story.StepAttempt)
	text := fmt.Sprintf("delivered by attempt %d (%s)", a.Attempt, stepAnswer(a))
	if took := stepEnd(a).Sub(c.ProducedAt.Time); !c.ProducedAt.IsZero() && took >= 0 {
		text += ", " + span(took) + " after it was sent"
	}
	return text
}

func (t tale) dead(s *story.Step) (where, next string) {
	if s == nil {
		return "dead; its dead letter is not there (any more)", ""
	}
	where = "dead, " + s.Reason
	if message := strings.TrimPrefix(s.Message, s.Reason+": "); message != "" {
		where += " (" + cut(message, mostSentence) + ")"
	}
	redrive := fmt.Sprintf("`reenvio dlq redrive --webhook %s --id %s` sends it again", t.Webhook, quoted(t.EventID))
	switch s.Reason {
	case string(record.WebhookUnknown), string(record.WebhookDeleted):
		return where, todo + "create it (`reenvio webhooks create --id " + t.Webhook + " --url URL`), then " + redrive
	case string(record.URLBlocked):
		return where, todo + "mend its URL (`reenvio webhooks update " + t.Webhook + " --url URL`), or let it through in the dispatchers' egress.allow; then " + redrive
	}
	return where, todo + fmt.Sprintf("`reenvio dlq show %d/%d` shows it whole, %s", s.Place.Partition, s.Place.Offset, redrive)
}

// mostSentence is room for a message that stands in no table: what it advises must not be cut off.
const mostSentence = 400

// todo begins the sentence about what a person does.
const todo = "What to do: "

func stepName(s *story.Step) string {
	switch {
	case s.Kind == story.StepAttempt && s.Attempt > 0:
		return fmt.Sprintf("attempt %d", s.Attempt)
	case s.Kind == story.StepAttempt:
		return string(s.Outcome)
	}
	return string(s.Kind)
}

func stepText(c *story.Copy, s *story.Step) string {
	switch s.Kind {
	case story.StepQueued:
		return queuedText(c, s)
	case story.StepAttempt:
		return attemptText(s)
	case story.StepWaiting:
		text := s.Place.String() + ", until " + clock(s.DueAt.Time)
		if s.Times > 1 {
			text += fmt.Sprintf(" (%d hops)", s.Times)
		}
		return text
	case story.StepParked:
		return fmt.Sprintf("%s, %s", s.Place, s.Reason)
	case story.StepDead:
		return fmt.Sprintf("%s, %s", s.Place, s.Reason)
	}
	return s.Place.String()
}

func queuedText(c *story.Copy, s *story.Step) string {
	text := s.Place.String()
	if c.EventType != "" {
		text += ", " + shortened(c.EventType)
	}
	text += ", " + overview.Plural(c.Bytes, "byte")
	if c.MovedFrom != nil {
		text += ", moved from " + c.MovedFrom.String()
	}
	if c.Redrive != "" {
		text += ", redrive " + c.Redrive
	}
	return text
}

func attemptText(s *story.Step) string {
	if s.Attempt == 0 {
		return shortened(s.Error)
	}
	text := fmt.Sprintf("%s after %s", stepAnswer(s), stepTook(s))
	if s.URLHost != "" {
		text += ", " + s.URLHost
	}
	if next := nextText(s.Next, s.NextAttemptAt); next != "" {
		text += ", next: " + next
	}
	return text
}

func stepAnswer(s *story.Step) string {
	return shortened(answerText(record.Attempt{Status: s.HTTPStatus, Error: s.Error}))
}

func stepTook(s *story.Step) string {
	if s.DurationMS == nil {
		return "no time"
	}
	return tookText(*s.DurationMS)
}

// stepEnd is when the answer was there.
func stepEnd(s *story.Step) time.Time {
	if s.DurationMS == nil {
		return s.At.Time
	}
	return s.At.Add(time.Duration(*s.DurationMS) * time.Millisecond)
}

// span is a stretch of time as a person says it: tenths of a second below a minute, seconds above.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return tookText(0)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
