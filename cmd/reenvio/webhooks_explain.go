package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

// holdsOf are those of a number's holds by hand that concern a webhook.
func holdsOf(e record.Endpoint, holds []record.Hold) []record.Hold {
	var own []record.Hold
	for _, h := range holds {
		if h.Concerns(e.Tenant, e.URLHost) {
			own = append(own, h)
		}
	}
	return own
}

func (v webhookView) held() bool { return v.State.Hold != nil || len(v.Holds) > 0 }

// statusText is the status, and whether something else keeps requests back.
func (v webhookView) statusText() string {
	if v.held() {
		return statusText(v.State) + ", held"
	}
	return statusText(v.State)
}

// whyNothingGoes says why a webhook is not sent to, and since when.
func (v webhookView) whyNothingGoes() [][2]string {
	var facts [][2]string
	for _, reason := range v.State.PauseReasons {
		facts = append(facts, [2]string{"Why", v.whyPaused(reason)})
	}
	facts = append(facts, [2]string{"Paused at", sinceText(v.State.PausedAt)})
	if h := v.State.Hold; h != nil {
		facts = append(facts, [2]string{"Held", heldText("webhook", *h)})
	}
	for _, h := range v.Holds {
		facts = append(facts, [2]string{"Held", heldText(h.String(), h)})
	}
	if until := v.State.HoldUntil; until.After(time.Now()) {
		facts = append(facts, [2]string{"Left alone until", timeText(until) + ", as its endpoint asked (Retry-After); it goes on by itself"})
	}
	return facts
}

func (v webhookView) whyPaused(reason record.PauseReason) string {
	switch reason {
	case record.PauseFailures:
		return "its failed attempts in a row reached the limit; the first was at " + cmp.Or(timeText(v.State.StreakStartedAt), "an unknown time")
	case record.PauseGone:
		return "it answered 410 Gone"
	case record.PauseConfig:
		return "its configuration can't be used: " + record.ConfigProblem(v.State.LastError)
	case record.PauseDisabled:
		return "its configuration says enabled: false"
	case record.PauseManual:
		text := "a person paused it"
		if v.pausedBy != nil && v.pausedBy.By != "" {
			text = "paused by " + v.pausedBy.By
		}
		if v.pausedBy != nil && v.pausedBy.Reason != "" {
			text += ": " + v.pausedBy.Reason
		}
		return text
	}
	return string(reason)
}

func heldText(what string, h record.Hold) string {
	text := what + ", by " + cmp.Or(h.By, "an unknown person")
	if !h.At.IsZero() {
		text += ", since " + sinceText(h.At)
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

// sinceText is a time and how long ago it was.
func sinceText(t record.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", timeText(t), max(0, time.Since(t.Time)).Round(time.Second))
}

func lastAnswer(s record.State) string {
	status := nonZero(s.LastStatus)
	switch {
	case s.LastError == "", strings.HasPrefix(s.LastError, record.ConfigError):
		return status
	case strings.Contains(s.LastError, status): // as in "status: HTTP 503", and where there was none
		return s.LastError
	}
	return status + ", " + s.LastError
}

// parkedExpireAt is when retention begins to matter to what is parked. It is worth no error: not everybody may read a topic's configuration.
func (s *session) parkedExpireAt(ctx context.Context, state record.State) record.Time {
	if parkedCount(state) == 0 || state.Parked.OldestAt.IsZero() {
		return record.Time{}
	}
	life, err := topology.ParkedLife(ctx, s.admin, s.topo)
	if err != nil || life == topology.Forever {
		return record.Time{}
	}
	return record.At(state.Parked.OldestAt.Add(life))
}

func (v webhookView) parkedText() string {
	s := v.State
	count := parkedCount(s)
	if count == 0 {
		return ""
	}
	text := strconv.FormatInt(count, 10)
	if since := sinceText(s.Parked.OldestAt); since != "" {
		text += ", the oldest since " + since
	}
	if at := timeText(v.ParkedExpireAt); at != "" {
		text += "; what still waits dies from " + at + " on, the oldest first"
	}
	return text
}

// pausedByConfiguration: a resume is not enough.
func (v webhookView) pausedByConfiguration() bool {
	return slices.ContainsFunc(v.State.PauseReasons, func(r record.PauseReason) bool { return !liftedByResume(r) })
}

// liftedByResume: the other reasons belong to the configuration.
func liftedByResume(r record.PauseReason) bool {
	return r != record.PauseConfig && r != record.PauseDisabled
}

// nextStep is what a person does about a webhook that is not sent to: one command, in most cases.
func (v webhookView) nextStep() string {
	id := v.Endpoint.ID
	var steps []string
	if v.State.Hold != nil {
		steps = append(steps, "`reenvio release --webhook "+id+"` ends the hold")
	}
	for _, h := range v.Holds {
		steps = append(steps, "`reenvio release "+releaseFlag(h)+"` ends the hold")
	}
	s := v.State
	switch {
	case s.HasPause(record.PauseConfig) && secrets.OtherKeyset(s.LastError):
		steps = append(steps, secrets.OtherKeysetStep("the dispatcher", id))
	case s.HasPause(record.PauseConfig):
		steps = append(steps, "mend its configuration (`reenvio webhooks update "+id+" --help`); it goes on by itself then")
	case s.HasPause(record.PauseDisabled):
		steps = append(steps, "`reenvio webhooks update "+id+" --enabled=true` sends again")
	}
	switch {
	case s.HasPause(record.PauseFailures), s.HasPause(record.PauseGone):
		steps = append(steps, "try it with `reenvio webhooks test "+id+"`; when it works, `reenvio webhooks resume "+id+"` sends again, what is parked first")
	case s.HasPause(record.PauseManual):
		steps = append(steps, "`reenvio webhooks resume "+id+"` sends again, what is parked first")
	}
	return strings.Join(steps, "; ")
}

// releaseFlag is how a hold is named on the command line.
func releaseFlag(h record.Hold) string {
	if h.Value == "" {
		return "--" + string(h.Scope)
	}
	return "--" + string(h.Scope) + " " + quoted(h.Value)
}
