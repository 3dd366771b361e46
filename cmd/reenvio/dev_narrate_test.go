package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestTheStoryOfAWebhook(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	n := newNarrator(&out, "reenvio")
	attempt := record.Attempt{Webhook: "demo-down", EventID: "e1", Attempt: 1, StartedAt: record.At(at), DurationMS: 3, Status: 500}

	failed := attempt
	failed.Outcome, failed.Next, failed.NextAttemptAt = record.Failed, record.NextRetry, record.At(at.Add(2103*time.Millisecond))
	n.attempt(failed)
	parked := attempt
	parked.Outcome, parked.Next, parked.Status, parked.Error = record.Failed, record.NextParked, 0, "timeout: headers"
	n.attempt(parked)
	n.parked(at, &record.Delivery{Event: record.Event{Webhook: "demo-down", ID: "e1"}, Parked: record.ParkPaused})
	delivered := attempt
	delivered.Outcome, delivered.Attempt, delivered.Status, delivered.LatenessMS = record.Delivered, 3, 204, 7
	n.attempt(delivered)
	dead := attempt
	dead.Outcome, dead.Attempt, dead.DurationMS = record.Dead, 5, 0
	n.attempt(dead)
	n.attempt(record.Attempt{Webhook: "demo-down", EventID: "e0", Outcome: record.Dead, StartedAt: record.At(at)}) // without a request
	letter := record.DeadLetter{Reason: record.AttemptsExhausted, Position: record.Source{Topic: "webhooks.dlq", Partition: 3, Offset: 17}, DiedAt: record.At(at)}
	letter.Webhook, letter.ID, letter.Attempts = "demo-down", "e1", 5
	n.deadLetter(letter)
	streak := record.State{ConsecutiveFailures: 9, Status: record.Active}
	n.state(at, "demo-down", &streak)
	paused := record.State{ConsecutiveFailures: 10, Status: record.Paused, PauseReasons: []record.PauseReason{record.PauseFailures}}
	n.state(at, "demo-down", &paused)
	n.state(at, "demo-down", &paused)
	n.state(at, "demo-down", nil)

	want := `12:00:00.003  demo-down   failed     attempt 1  e1                          500 in 3 ms, retry due 12:00:02.103 (in 2.1 s)
12:00:00.003  demo-down   failed     attempt 1  e1                          timeout: headers in 3 ms
12:00:00.000  demo-down   parked     paused     e1
12:00:00.003  demo-down   delivered  attempt 3  e1                          204 in 3 ms, 7 ms late
12:00:00.000  demo-down   failed     attempt 5  e1                          500 in <1 ms, no attempt left
12:00:00.000  demo-down   dead       attempts_exhausted: e1. See it:
                                     reenvio dlq show 3/17
12:00:00.000  demo-down   paused     10 failed attempts in a row; its events are kept. Resume it:
                                     reenvio webhooks resume demo-down
12:00:00.000  demo-down   resumed    what was parked goes first
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// One long id neither moves the lines of others out of sight, nor is printed whole.
func TestTheColumnOfWebhooksIsBounded(t *testing.T) {
	var out strings.Builder
	n := newNarrator(&out, "reenvio")
	a := record.Attempt{EventID: "e1", Attempt: 1, Outcome: record.Delivered, Status: 200}
	for _, webhook := range []string{strings.Repeat("x", 300), "short"} {
		a.Webhook = webhook
		n.attempt(a)
	}
	n.state(time.Now(), "short", &record.State{Status: record.Paused, PauseReasons: []record.PauseReason{record.PauseManual}})
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[0], " "+strings.Repeat("x", 31)+"… ") || strings.Contains(lines[0], strings.Repeat("x", 32)) {
		t.Errorf("the long id: %s", lines[0])
	}
	for i, at := range map[int]string{1: "delivered", 2: "paused", 3: "reenvio webhooks resume short"} {
		if column := strings.Index(lines[i], at); column > 60 {
			t.Errorf("%s begins in column %d", at, column)
		}
	}
}

// A resume does not lift what the configuration has ordered.
func TestTheNextStepOfAPause(t *testing.T) {
	for reason, want := range map[record.PauseReason]string{
		record.PauseConfig: "reenvio webhooks get w", record.PauseDisabled: "reenvio webhooks update w --enabled=true", record.PauseManual: "reenvio webhooks resume w", record.PauseGone: "reenvio webhooks resume w",
	} {
		var out strings.Builder
		newNarrator(&out, "reenvio").state(time.Now(), "w", &record.State{Status: record.Paused, PauseReasons: []record.PauseReason{reason}})
		if got := out.String(); !strings.HasSuffix(got, " "+want+"\n") || strings.Contains(got, "Resume it") != strings.Contains(want, "resume") {
			t.Errorf("%s: %s", reason, got)
		}
	}
}
