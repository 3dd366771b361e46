package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
)

// start runs a command beside the test, which sees its output as it comes.
func (s *shell) start(t *testing.T, args ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &devRun{screen: newScreen(), errors: newScreen(), stop: stop, ended: make(chan int, 1)}
	c := &cli{stdin: strings.NewReader(""), stdout: d.screen, stderr: d.errors, environ: s.environ}
	go func() { d.ended <- run(ctx, c, args) }()
	t.Cleanup(stop)
	return d
}

// TestTheStoryOfWhatWasSent goes with `reenvio dev`: sent and waited for, looked up, and read in the log.
func TestTheStoryOfWhatWasSent(t *testing.T) {
	s := newShell(t)
	dev := startDev(t, s)
	dev.await(t, dev.ended, demoOK, "delivered")

	s.run(t, "send", "--webhook", demoOK, "--id", "e1", "--data", "{}", "--wait").wantCode(t, exitOK).
		wantOut(t, "Offset", "attempt 1: 200 after", "e1 of demo-ok: delivered by attempt 1 (200)")
	answer := s.run(t, "send", "--webhook", demoOK, "--id", "e2", "--wait=1m", "-o", "json").wantCode(t, exitOK).wantErr(t, "attempt 1: 200").object(t)
	attempts, _ := answer["attempts"].([]any)
	if answer["id"] != "e2" || answer["topic"] != "webhooks.events" || answer["outcome"] != "delivered" || len(attempts) != 1 || attempts[0].(map[string]any)["status"] != 200.0 {
		t.Errorf("got %v", answer)
	}
	s.run(t, "send", "--webhook", "nobody", "--id", "e3", "--wait").wantCode(t, exitFailed).
		wantOut(t, "e3 of nobody: dead, webhook_unknown", "create it (`reenvio webhooks create --id nobody", "reenvio dlq redrive --webhook nobody --id e3")
	s.run(t, "send", "--webhook", demoFlaky, "--id", "e4", "--wait=1ns").wantCode(t, exitFailed).
		wantErr(t, "Not delivered within 1ns", "reenvio events get e4 --webhook demo-flaky")
	pending := s.run(t, "send", "--webhook", demoFlaky, "--wait=1ns", "-o", "json").wantCode(t, exitFailed).object(t)
	if attempts, there := pending["attempts"].([]any); pending["outcome"] != "pending" || !there || len(attempts) != 0 {
		t.Errorf("got %v", pending)
	}

	s.run(t, "events", "get", "e1", "--webhook", demoOK).wantCode(t, exitOK).
		wantOut(t, "e1 of demo-ok: delivered by attempt 1 (200)", "queued", "webhooks.events/", "reenvio.test, 2 bytes", "attempt 1", "200 after")
	told := s.run(t, "events", "get", "e1", "--webhook", demoOK, "-o", "json").wantCode(t, exitOK).object(t)
	if copies := told["copies"].([]any); told["event_id"] != "e1" || len(copies) != 1 || copies[0].(map[string]any)["status"] != "delivered" {
		t.Errorf("got %v", told)
	}
	s.run(t, "events", "get", "e9", "--webhook", demoOK).wantCode(t, exitFailed).
		wantErr(t, "nothing is known of an event e9 of demo-ok in partition", "webhooks.*", "7 days", "30 days", "--since")
	s.run(t, "events", "get", "e9", "--webhook", "nowhere").wantCode(t, exitFailed).wantErr(t, "there is no webhook nowhere", "reenvio webhooks list")

	logs := s.run(t, "logs", demoOK).wantCode(t, exitOK).wantOut(t, "TIME", "delivered", "e1", "e2", "200")
	if strings.Index(logs.out, "e1 ") > strings.Index(logs.out, "e2 ") {
		t.Errorf("the newest goes last:\n%s", logs.out)
	}
	if one := s.run(t, "logs", demoOK, "--limit", "1", "-o", "json").wantCode(t, exitOK).array(t); len(one) != 1 || one[0].(map[string]any)["event_id"] != "e2" {
		t.Errorf("got %v", one)
	}
	s.run(t, "logs", demoOK, "--failed").wantCode(t, exitOK).wantErr(t, "There is no failed attempt of demo-ok.")
	if none := s.run(t, "logs", demoOK, "--failed", "-o", "json").wantCode(t, exitOK).array(t); len(none) != 0 {
		t.Errorf("got %v", none)
	}
	s.run(t, "logs", demoFlaky, "--failed", "--since", "1h").wantCode(t, exitOK).wantOut(t, "failed", "503", "retry ")
	s.run(t, "logs", "nobody").wantCode(t, exitOK).wantOut(t, "dead", "webhook_unknown")
	s.run(t, "logs", "nowhere").wantCode(t, exitFailed).wantErr(t, "there is no such webhook: nowhere")

	follow := s.start(t, "logs", demoOK, "--follow", "--limit", "1", "-o", "json")
	follow.await(t, follow.ended, `"event_id":"e2"`)
	table := s.start(t, "logs", demoOK, "--follow", "--failed")
	table.await(t, table.ended, "TIME", "EVENT")
	s.run(t, "send", "--webhook", demoOK, "--id", "e5").wantCode(t, exitOK)
	line := follow.await(t, follow.ended, `"event_id":"e5"`)
	var attempt record.Attempt
	if err := json.Unmarshal([]byte(line), &attempt); err != nil || attempt.Status != 200 {
		t.Errorf("no JSON Lines: %v\n%s", err, line)
	}
	for _, f := range []*devRun{follow, table} {
		f.stop()
		if code := <-f.ended; code != exitOK {
			t.Errorf("it ended with %d: that is how following ends\n%s", code, &f.errors.text)
		}
	}

	s.run(t, "webhooks", "pause", demoOK).wantCode(t, exitOK)
	wait := s.start(t, "send", "--webhook", demoOK, "--id", "e6", "--wait=1m")
	wait.await(t, wait.ended, "e6 of demo-ok: parked since", "paused (manual)")
	wait.await(t, wait.ended, "reenvio webhooks resume demo-ok")
	s.run(t, "events", "get", "e6", "--webhook", demoOK).wantCode(t, exitOK).wantOut(t, "parked since", "paused (manual)", "reenvio webhooks resume demo-ok", "webhooks.parked/")
	short := s.run(t, "send", "--webhook", demoOK, "--id", "e7", "--wait=2s", "-o", "json").wantCode(t, exitFailed).wantErr(t, "e7 of demo-ok: parked", "Not delivered within 2s.")
	if n := strings.Count(short.errOut, "reenvio webhooks resume demo-ok"); n != 1 {
		t.Errorf("what to do is said %d times:\n%s", n, short.errOut)
	}
	held := short.object(t)
	if next, _ := held["next_step"].(string); held["outcome"] != "pending" || held["status"] != "parked" || !strings.HasPrefix(next, "`reenvio webhooks resume demo-ok`") {
		t.Errorf("got %v", held)
	}
	s.run(t, "webhooks", "resume", demoOK).wantCode(t, exitOK)
	wait.await(t, wait.ended, "attempt 1: 200")
	if code := <-wait.ended; code != exitOK {
		t.Errorf("it ended with %d", code)
	}
	dev.end(t)
}

func TestStoryCommandsRefuse(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		"--webhook WEBHOOK":           {"events", "get", "e1"},
		"an event id":                 {"events", "get", "--webhook", "a"},
		"webhook id has a byte":       {"events", "get", "e1", "--webhook", "a b"},
		"event id has a byte":         {"events", "get", "e 1", "--webhook", "a"},
		"24h or 7d":                   {"events", "get", "e1", "--webhook", "a", "--since", "yesterday"},
		"a webhook id":                {"logs"},
		"--limit is 0":                {"logs", "a", "--limit", "0"},
		"--wait is 0s":                {"send", "--webhook", "a", "--wait=0s"},
		`takes no argument, got "5s"`: {"send", "--webhook", "a", "--wait", "5s"},
	} {
		s.run(t, args...).wantCode(t, exitUsage).wantErr(t, want)
	}
	s = newClusterShell(t)
	for _, args := range [][]string{{"logs", "a"}, {"events", "get", "e1", "--webhook", "a"}} {
		s.run(t, args...).wantCode(t, exitFailed).wantErr(t, "reenvio topics apply")
	}
}

func TestSince(t *testing.T) {
	for text, ago := range map[string]time.Duration{"90m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, time.Now().Add(-time.Hour).Format(time.RFC3339): time.Hour} {
		var s since
		if err := s.Set(text); err != nil || time.Since(s.time)-ago > 2*time.Second || ago-time.Since(s.time) > 2*time.Second {
			t.Errorf("%s: %s, %v", text, s.time, err)
		}
	}
	for _, text := range []string{"", "7", "-1h", "0d", "1000000000d", "99999999999999999999d", "1.5d"} {
		if err := new(since).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestWhereAnEventIs has what a person reads first of every status, and what they should do.
func TestWhereAnEventIs(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) record.Time { return record.At(now.Add(d)) }
	took := int64(12)
	paused := &record.State{ConsecutiveFailures: 10}
	paused.AddPause(record.PauseFailures)
	left := &record.State{HoldUntil: at(time.Minute)}
	waiting := story.Step{Kind: story.StepWaiting, Attempt: 1, DueAt: at(3200 * time.Millisecond)}
	late := story.Step{Kind: story.StepWaiting, Attempt: 1, DueAt: at(-2 * time.Minute)}
	parked := story.Step{Kind: story.StepParked, At: at(-time.Hour), Reason: "overflow"}
	delivered := story.Step{Kind: story.StepAttempt, At: at(-time.Minute), Attempt: 2, HTTPStatus: 204, Outcome: record.Delivered, DurationMS: &took}
	dead := story.Step{Kind: story.StepDead, Reason: "attempts_exhausted", Message: "status: HTTP 500", Place: record.Source{Topic: "d", Partition: 3, Offset: 17}}
	blocked := "url_blocked: the address is not public (loopback); exceptions go into egress.allow"
	tests := []struct {
		name        string
		status      story.Status
		steps       []story.Step
		state       *record.State
		holds       []record.Hold
		orphan      bool
		where, next []string
	}{
		{name: "queued", status: story.Queued, where: []string{"queued"}, next: []string{"by itself", "reenvio status", "number 3"}},
		{name: "held", status: story.Queued, holds: []record.Hold{{Scope: record.HoldAll, By: "ann"}}, where: []string{"queued", "held", "ann"}, next: []string{"reenvio release --all"}},
		{name: "waiting", status: story.Waiting, steps: []story.Step{waiting}, where: []string{"waits for attempt 2, due in 3.2 s"}, next: []string{"by itself"}},
		{name: "late", status: story.Waiting, steps: []story.Step{late}, where: []string{"due 2m0s ago"}, next: []string{"reenvio status"}},
		{name: "waiting, paused", status: story.Waiting, steps: []story.Step{waiting}, state: paused, where: []string{"due in 3.2 s", "paused (consecutive_failures)", "held back then"}, next: []string{"reenvio webhooks resume crm"}},
		{name: "parked, paused", status: story.Parked, steps: []story.Step{parked}, state: paused, where: []string{"parked since", "paused (consecutive_failures)"}, next: []string{"reenvio webhooks resume crm"}},
		{name: "held by hand", status: story.Parked, steps: []story.Step{parked}, state: &record.State{Hold: &record.Hold{By: "bob"}}, where: []string{"parked since", "held", "bob"}, next: []string{"reenvio release --webhook crm"}},
		{name: "queued, left alone", status: story.Queued, state: left, where: []string{"queued", "asked to be left alone until"}, next: []string{"by itself after that"}},
		{name: "waiting, left alone", status: story.Waiting, steps: []story.Step{waiting}, state: left, where: []string{"due in 3.2 s", "asked to be left alone until"}, next: []string{"by itself after that"}},
		{name: "parked, left alone", status: story.Parked, steps: []story.Step{parked}, state: left, where: []string{"parked since", "asked to be left alone until"}, next: []string{"by itself after that", "in order"}},
		{name: "left alone before", status: story.Parked, steps: []story.Step{parked}, state: &record.State{HoldUntil: at(-time.Minute)}, where: []string{"more waiting than it could take"}, next: []string{"by itself"}},
		{name: "overflow", status: story.Parked, steps: []story.Step{parked}, where: []string{"more waiting than it could take"}, next: []string{"by itself"}},
		{name: "delivered", status: story.Delivered, steps: []story.Step{delivered}, where: []string{"delivered by attempt 2 (204), 1m0s after it was sent"}},
		{name: "dead", status: story.Dead, steps: []story.Step{dead}, where: []string{"dead, attempts_exhausted (status: HTTP 500)"}, next: []string{"reenvio dlq show 3/17", "reenvio dlq redrive --webhook crm --id e1"}},
		{name: "no webhook", status: story.Dead, steps: []story.Step{{Kind: story.StepDead, Reason: "webhook_unknown", Message: "there is none"}}, where: []string{"dead, webhook_unknown (there is none)"}, next: []string{"create it (`reenvio webhooks create --id crm ", "then `reenvio dlq redrive"}},
		{name: "blocked", status: story.Dead, steps: []story.Step{{Kind: story.StepDead, Reason: "url_blocked", Message: blocked}}, where: []string{"dead, url_blocked (the address is not public", "exceptions go into egress.allow)"}, next: []string{"reenvio webhooks update crm --url", "egress.allow", "then `reenvio dlq redrive"}},
		{name: "no owner", status: story.Queued, orphan: true, where: []string{"queued", "its number (3) has no owner"}, next: []string{"start a dispatcher (`reenvio dispatcher`)"}},
		{name: "no owner, paused", status: story.Parked, orphan: true, steps: []story.Step{parked}, state: paused, where: []string{"paused (consecutive_failures)"}, next: []string{"reenvio webhooks resume crm"}},
		{name: "no owner, dead", status: story.Dead, orphan: true, steps: []story.Step{dead}, where: []string{"dead, attempts_exhausted (status: HTTP 500)"}, next: []string{"reenvio dlq show 3/17"}},
		{name: "ended", status: story.Ended, where: []string{"attempts.successes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := story.Copy{Status: tt.status, Steps: tt.steps, ProducedAt: at(-2 * time.Minute)}
			told := story.Story{Webhook: "crm", EventID: "e1", Number: 3, Copies: []story.Copy{c}, State: tt.state, Holds: tt.holds}
			tale := newTale(told, record.Endpoint{}, now)
			tale.orphan = tt.orphan
			where, next := tale.where(&c)
			o := outcome{out: where, errOut: next}
			o.wantOut(t, tt.where...).wantErr(t, tt.next...)
			if len(tt.next) == 0 && next != "" {
				t.Errorf("there is nothing to do: %s", next)
			}
		})
	}
}

func TestAnAttemptAsItComes(t *testing.T) {
	took := int64(12)
	at := record.At(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	s := story.Step{Kind: story.StepAttempt, At: at, Attempt: 1, HTTPStatus: 500, Error: "status", DurationMS: &took, Next: record.NextRetry, NextAttemptAt: record.At(at.Add(2112 * time.Millisecond))}
	if got := arrivedText(&s); got != "attempt 1: 500 after 12 ms, next in 2.1 s" {
		t.Errorf("got %s", got)
	}
	s.Next, s.HTTPStatus, s.Error = record.NextParked, 0, "timeout: no answer within 30s"
	if got := arrivedText(&s); got != "attempt 1: timeout: no answer within 30s after 12 ms, parked" {
		t.Errorf("got %s", got)
	}
}

// TestACopyThatWasRedriven has a dead letter, and the same event again.
func TestACopyThatWasRedriven(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	client := s.client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	var sources []record.Source
	for _, redrive := range []string{"", "run7/1"} {
		r, err := record.NewEventRecord("webhooks.events", 0, record.Event{Webhook: "crm", ID: "e1", Type: "order\x1b.paid", Value: []byte("{}"), Redrive: redrive})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, record.SourceOf(r))
		if redrive == "" {
			d, _ := record.FromEvent(r)
			letter := d.DeadLetter("webhooks.dlq", 0, record.Death{Reason: record.Expired, At: record.At(died)})
			if err := client.ProduceSync(t.Context(), letter).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := s.run(t, "events", "get", "e1", "--webhook", "crm").wantCode(t, exitOK).
		wantOut(t, "e1 of crm: queued", "sent 2 times", fmt.Sprintf("%s: dead, expired", sources[0]), fmt.Sprintf("%s: queued", sources[1]), "redrive run7/1")
	if strings.Contains(o.out, "\x1b") {
		t.Error("an event's type drives the terminal")
	}
}

func TestAnEventWhoseNumberHasNoOwner(t *testing.T) {
	s := newWebhookShell(t)
	wait := s.start(t, "send", "--webhook", "crm", "--id", "e1", "--wait=1m")
	wait.await(t, wait.ended, "e1 of crm: queued, no attempt has ended yet; its number (", "has no owner")
	wait.await(t, wait.ended, "start a dispatcher (`reenvio dispatcher`)")
	wait.stop()
	<-wait.ended
	s.run(t, "events", "get", "e1", "--webhook", "crm").wantCode(t, exitOK).wantOut(t, "has no owner", "start a dispatcher (`reenvio dispatcher`)")
}

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{"<1 ms": 0, "12 ms": 12 * time.Millisecond, "1.5 s": 1500 * time.Millisecond, "2m0s": 2 * time.Minute} {
		if got := span(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
