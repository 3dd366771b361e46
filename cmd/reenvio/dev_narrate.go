package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"

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
	webhook = clean(webhook)
	n.width = max(n.width, len(webhook))
	text := fmt.Sprintf("%s  %-*s  %s  %s", n.dim.Render(at.Local().Format("15:04:05.000")), n.width, webhook, style.Render(fmt.Sprintf("%-9s", what)), clean(more))
	fmt.Fprintln(n.w, strings.TrimRight(text, " "))
}

func (n *narrator) attempt(a record.Attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := a.StartedAt.Add(time.Duration(a.DurationMS) * time.Millisecond)
	if a.Attempt == 0 { // an end without a request; a dead letter tells its own story
		if a.Outcome != record.Dead {
			n.line(at, a.Webhook, n.dim, string(a.Outcome), a.EventID)
		}
		return
	}
	said := fmt.Sprintf("attempt %d  %-26s  %s in %d ms", a.Attempt, a.EventID, answerText(a), a.DurationMS)
	switch a.Outcome {
	case record.Delivered:
		if a.LatenessMS > 0 {
			said += fmt.Sprintf(", %d ms after it was due", a.LatenessMS)
		}
		n.line(at, a.Webhook, n.good, "delivered", said)
	case record.Failed:
		if a.Next == record.NextParked {
			said += "; parked until the webhook is resumed"
		} else {
			said += fmt.Sprintf("; retry due at %s (in %s)", a.NextAttemptAt.Local().Format("15:04:05.000"), a.NextAttemptAt.Sub(at).Round(100*time.Millisecond))
		}
		n.line(at, a.Webhook, n.warn, "failed", said)
	default:
		n.line(at, a.Webhook, n.bad, "failed", said+"; that was the last attempt")
	}
}

func answerText(a record.Attempt) string {
	if a.Status != 0 {
		return fmt.Sprint(a.Status)
	}
	return a.Error
}

func (n *narrator) deadLetter(l record.DeadLetter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	webhook := l.Webhook
	if webhook == "" {
		webhook = string(l.Key)
	}
	n.line(l.DiedAt.Time, webhook, n.bad, "dead", fmt.Sprintf("%s is a dead letter now: %s (%d attempts). See it: %s dlq show %d/%d",
		l.ID, l.Reason, l.Attempts, n.self, l.Position.Partition, l.Position.Offset))
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
			reasons = append(reasons, fmt.Sprintf("%d failed attempts in a row", s.ConsecutiveFailures))
		} else {
			reasons = append(reasons, string(reason))
		}
	}
	n.line(at, webhook, n.bad, "paused", fmt.Sprintf("%s; its events are kept. Resume it: %s webhooks resume %s", strings.Join(reasons, ", "), n.self, webhook))
}
