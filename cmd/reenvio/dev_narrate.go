package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

// narrator tells a person what the pipeline does, line by line, from the records that it writes.
//
// It is safe for concurrent use.
type narrator struct {
	mu     sync.Mutex
	w      io.Writer
	self   string          // how a person starts this program
	width  int             // of the column of webhooks
	paused map[string]bool // as told last
	good   lipgloss.Style  // delivered
	warn   lipgloss.Style  // will be tried again
	bad    lipgloss.Style  // dead, paused
	dim    lipgloss.Style  // times and ids
}

// newNarrator colours its lines when w is a terminal.
func newNarrator(w io.Writer, self string) *narrator {
	colours := lipgloss.NewRenderer(w)
	style := func(colour string) lipgloss.Style { return colours.NewStyle().Foreground(lipgloss.Color(colour)) }
	return &narrator{w: w, self: self, width: 10, paused: map[string]bool{}, good: style("2"), warn: style("3"), bad: style("1"), dim: style("8")}
}

// line is a moment, a webhook and what happened to it.
func (n *narrator) line(at time.Time, webhook string, style lipgloss.Style, what, more string) {
	webhook = cut(clean(webhook), mostWidth)
	n.width = max(n.width, utf8.RuneCountInString(webhook))
	text := fmt.Sprintf("%s  %-*s  %s  %s", n.dim.Render(clock(at)), n.width, webhook, style.Render(fmt.Sprintf("%-*s", whatWidth, what)), clean(more))
	fmt.Fprintln(n.w, strings.TrimRight(text, " "))
}

// hint is a command to try next, under the text of the line that it belongs to.
func (n *narrator) hint(command string) {
	fmt.Fprintf(n.w, "%*s%s %s\n", len(clockFormat)+2+n.width+2+whatWidth+2, "", n.self, clean(command))
}

const (
	clockFormat = "15:04:05.000"
	whatWidth   = len("delivered")
	mostWidth   = 32 // of the column of webhooks: one long id must not push all that follows out of sight
)

func clock(at time.Time) string { return at.Local().Format(clockFormat) }

// attemptEnd is when the answer was there.
func attemptEnd(a record.Attempt) time.Time {
	return a.StartedAt.Add(time.Duration(a.DurationMS) * time.Millisecond)
}

func (n *narrator) attempt(a record.Attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := attemptEnd(a)
	if a.Attempt == 0 { // an end without a request; a dead letter tells its own story
		if a.Outcome != record.Dead {
			n.line(at, a.Webhook, n.dim, string(a.Outcome), a.EventID)
		}
		return
	}
	said := fmt.Sprintf("attempt %d  %-26s  %s in %s", a.Attempt, a.EventID, answerText(a), tookText(a.DurationMS))
	switch a.Outcome {
	case record.Delivered:
		if a.LatenessMS > 0 {
			said += fmt.Sprintf(", %d ms late", a.LatenessMS)
		}
		n.line(at, a.Webhook, n.good, "delivered", said)
	case record.Failed:
		if a.Next == record.NextRetry {
			said += fmt.Sprintf(", retry due %s (in %.1f s)", clock(a.NextAttemptAt.Time), a.NextAttemptAt.Sub(at).Seconds())
		}
		n.line(at, a.Webhook, n.warn, "failed", said)
	default:
		n.line(at, a.Webhook, n.bad, "failed", said+", no attempt left")
	}
}

func answerText(a record.Attempt) string {
	if a.Status != 0 {
		return fmt.Sprint(a.Status)
	}
	return a.Error
}

func tookText(ms int64) string {
	if ms == 0 {
		return "<1 ms"
	}
	return fmt.Sprintf("%d ms", ms)
}

func (n *narrator) deadLetter(l record.DeadLetter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	webhook := l.Webhook
	if webhook == "" {
		webhook = cmp.Or(string(l.Key), "-")
	}
	n.line(l.DiedAt.Time, webhook, n.bad, "dead", fmt.Sprintf("%s: %s. See it:", l.Reason, l.ID))
	n.hint(fmt.Sprintf("dlq show %d/%d", l.Position.Partition, l.Position.Offset))
}

func (n *narrator) parked(at time.Time, d *record.Delivery) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.line(at, d.Webhook, n.warn, "parked", fmt.Sprintf("%-9s  %s", d.Parked, d.ID))
}

// state tells pauses and resumes only: a streak grows with each failed attempt, and those are told already. s is nil for a webhook that
// is healthy again.
func (n *narrator) state(at time.Time, webhook string, s *record.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	paused := s != nil && s.Status == record.Paused
	if paused == n.paused[webhook] {
		return
	}
	n.paused[webhook] = paused
	if !paused {
		n.line(at, webhook, n.good, "resumed", "what was parked goes first")
		return
	}
	var reasons []string
	for _, reason := range s.PauseReasons {
		if reason == record.PauseFailures {
			reasons = append(reasons, overview.Plural(s.ConsecutiveFailures, "failed attempt")+" in a row")
		} else {
			reasons = append(reasons, string(reason))
		}
	}
	what, command := "Resume it:", "webhooks resume "+webhook
	switch { // what the configuration ordered is not a person's to lift
	case s.HasPause(record.PauseConfig):
		what, command = "See what is wrong with its configuration:", "webhooks get "+webhook
	case s.HasPause(record.PauseDisabled):
		what, command = "Send to it again:", "webhooks update "+webhook+" --enabled=true"
	}
	n.line(at, webhook, n.bad, "paused", strings.Join(reasons, ", ")+"; its events are kept. "+what)
	n.hint(command)
}
