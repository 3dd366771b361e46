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
)

// numberRecord is the state of the number that a webhook belongs to.
func numberRecord(t *testing.T, webhook string, notes record.NumberState) *kgo.Record {
	t.Helper()
	return &kgo.Record{Topic: "webhooks.state", Partition: numberOf(t, webhook), Key: []byte(record.NumberKey), Value: notes.Marshal()}
}

func TestGetSaysWhyAndWhatToDo(t *testing.T) {
	s := newWebhookShell(t)
	at := record.At(time.Now().Add(-time.Hour))
	state := record.State{
		Webhook: "crm", PausedAt: at, ConsecutiveFailures: 10, StreakStartedAt: at, LastStatus: 503, LastError: "status: HTTP 503",
		Parked: &record.Parked{Count: 12, OldestAt: at},
	}
	for reason, want := range map[record.PauseReason][]string{
		record.PauseFailures: {"reached the limit", "`reenvio webhooks test crm`", "`reenvio webhooks resume crm`"},
		record.PauseGone:     {"410 Gone", "`reenvio webhooks resume crm`"},
		record.PauseConfig:   {"can't be used", "`reenvio webhooks update crm --help`"},
		record.PauseDisabled: {"enabled: false", "`reenvio webhooks update crm --enabled=true`"},
		record.PauseManual:   {"a person paused it", "`reenvio webhooks resume crm`"},
	} {
		state.PauseReasons = []record.PauseReason{reason}
		putState(t, s, state)
		get := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, append(want, "paused ("+string(reason)+")", "(1h0m0s ago)", "12, the oldest since", "status: HTTP 503")...)
		if strings.Contains(get.out, "503, status") {
			t.Errorf("the status is there twice:\n%s", get.out)
		}
	}
	// Until 13 of the 14 days of retention have passed.
	from := record.At(at.Add(13 * 24 * time.Hour))
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "what still waits dies from "+timeText(from)+" on")
	if o := s.run(t, "webhooks", "get", "crm", "-o", "json").wantCode(t, exitOK).object(t); o["parked_expire_at"] != from.String() {
		t.Errorf("got %v", o["parked_expire_at"])
	}
	// Who paused it by hand, and why, is in the audit trail.
	state.PauseReasons = []record.PauseReason{record.PauseManual}
	putState(t, s, state)
	put(t, s, "webhooks.commands", "crm", record.Command{ID: "1", Webhook: "crm", Action: record.ActionPause, By: "cli:ann", Reason: "maintenance"}.Marshal())
	put(t, s, "webhooks.commands", "crm", record.Result{ID: "1", Result: record.ResultDone}.Marshal())
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "paused by cli:ann: maintenance")
	// Who pauses it again without a reason takes nothing away from it.
	answerCommands(t, s, map[record.Action]record.Result{record.ActionPause: {Result: record.ResultDone}})
	s.run(t, "webhooks", "pause", "crm").wantCode(t, exitOK).wantErr(t, "crm was paused by hand already (paused by cli:ann: maintenance)")
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "paused by cli:ann: maintenance")
	if o := s.run(t, "webhooks", "pause", "crm", "--reason", "moving").wantCode(t, exitOK); o.errOut != "" {
		t.Errorf("stderr: %s", o.errOut)
	}
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, ": moving")
}

func TestDiscardParked(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "webhooks", "discard-parked", "crm", "--before", "1h").wantCode(t, exitOK).wantOut(t, "Nothing to discard", "0 of 0")
	now := time.Now()
	var last int64
	var done []int64
	for i := range 5 { // 5h to 1h old
		last = putParked(t, s, "crm", fmt.Sprint(i), now.Add(time.Duration(i-5)*time.Hour))
		if i == 1 {
			done = append(done, last)
		}
	}
	putState(t, s, record.State{Webhook: "crm", PauseReasons: []record.PauseReason{record.PauseManual}, Parked: &record.Parked{From: 0, Done: done, Last: last, Count: 4}})

	s.run(t, "webhooks", "discard-parked", "crm", "--before", "150m", "--dry-run").wantCode(t, exitOK).wantOut(t, "Would discard 2 of 4 parked events of crm")
	o := s.run(t, "webhooks", "discard-parked", "crm", "--before", now.Add(-90*time.Minute).UTC().Format(time.RFC3339), "--dry-run", "-o", "json").wantCode(t, exitOK).object(t)
	if o["matching"] != 3.0 || o["parked"] != 4.0 || o["dry_run"] != true || o["result"] != nil || o["oldest"] != record.At(now.Add(-5*time.Hour)).String() {
		t.Errorf("got %v", o)
	}
	s.run(t, "webhooks", "discard-parked", "crm", "--before", "24h").wantCode(t, exitOK).wantOut(t, "Nothing to discard: 0 of 4")
	s.run(t, "webhooks", "discard-parked", "crm", "--before", "150m").wantCode(t, exitUsage).wantErr(t, "Discard 2 of 4", "--yes")

	// Nobody answers.
	s.run(t, "webhooks", "discard-parked", "crm", "--before", "150m", "--yes", "--wait", "1ms").wantCode(t, exitFailed).wantOut(t, "pending: no dispatcher owns number ", "has not answered")
	got := answerCommands(t, s, map[record.Action]record.Result{record.ActionDiscardParked: {Result: record.ResultDone, Detail: "discarded: 2, still parked: 3"}})
	<-got
	s.run(t, "webhooks", "discard-parked", "crm", "--before", "150m", "--yes").wantCode(t, exitOK).wantOut(t, "discard-parked of crm done: discarded: 2, still parked: 3")
	if c := <-got; c.Webhook != "crm" || now.Sub(c.Before.Time) < 149*time.Minute || now.Sub(c.Before.Time) > 151*time.Minute {
		t.Errorf("command: %+v", c)
	}
	o = s.run(t, "webhooks", "discard-parked", "crm", "--before", "150m", "--yes", "-o", "json").wantCode(t, exitOK).object(t)
	if o["result"] != "done" || o["matching"] != 2.0 || o["webhook"] != "crm" {
		t.Errorf("got %v", o)
	}
}

func TestTestShowsTheAnswer(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "webhooks", "test", "nobody").wantCode(t, exitFailed).wantErr(t, "nobody", "webhooks list")
	s.run(t, "webhooks", "test", "crm", "--wait", "300ms").wantCode(t, exitFailed).wantOut(t, "pending: no dispatcher owns number ", "or it has not answered within 300ms")
	answers := map[record.Action]record.Result{record.ActionTest: {Result: record.ResultFailed, Detail: "status 500 after 3 ms"}}
	got := answerCommands(t, s, answers)
	<-got
	s.run(t, "webhooks", "test", "crm").wantCode(t, exitFailed).wantOut(t, "test of crm failed: status 500 after 3 ms")
}

// While a resumed webhook's parked events go out, its state counts them down.
func TestResumeFollows(t *testing.T) {
	s := newWebhookShell(t)
	count := func(n int64, reasons ...record.PauseReason) {
		put(t, s, "webhooks.state", "crm", record.State{Webhook: "crm", PauseReasons: reasons, Parked: &record.Parked{Count: n}}.Marshal())
	}
	answerCommands(t, s, map[record.Action]record.Result{record.ActionResume: {Result: record.ResultDone, Detail: "active"}})
	count(5)

	// A program reads lines, and a person who has seen enough leaves.
	out, errs := newScreen(), newScreen()
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	start := func(args ...string) {
		c := &cli{stdin: strings.NewReader(""), stdout: out, stderr: errs, environ: s.environ, renew: true}
		go func() { ended <- run(ctx, c, append([]string{"webhooks", "resume", "crm", "--follow"}, args...)) }()
	}
	start("-o", "json")
	var line drainStep
	if err := json.Unmarshal([]byte(out.await(t, ended, `"parked":5`)), &line); err != nil || line.Webhook != "crm" || line.ETA != 0 {
		t.Errorf("got %+v, %v", line, err)
	}
	count(3)
	out.await(t, ended, `"parked":3`, `"eta":`)
	errs.await(t, ended, "crm: parked events left: 3, about")
	leave()
	errs.await(t, ended, "goes on without this command", "parked events left: 3", "webhooks get crm")
	if code := <-ended; code != exitFailed {
		t.Errorf("ended with %d", code)
	}
	if first, _, _ := strings.Cut(out.text.String(), "\n"); !strings.Contains(first, `"result":"done"`) {
		t.Errorf("the first line is no result: %s", first)
	}

	// It is paused again.
	count(3, record.PauseFailures)
	s.run(t, "webhooks", "resume", "crm", "--follow").wantCode(t, exitFailed).wantErr(t, "crm is paused (consecutive_failures)", "parked events left: 3", "webhooks test crm")
	// Its host is held, as its number's state says.
	count(3)
	produce(t, s, numberRecord(t, "crm", record.NumberState{Holds: []record.Hold{{Scope: record.HoldHost, Value: "crm.example.com"}}}))
	s.run(t, "webhooks", "resume", "crm", "--follow").wantCode(t, exitFailed).wantErr(t, "crm is active, held", "release --host crm.example.com")
	// All are out, since all have died, which paused it.
	put(t, s, "webhooks.state", "crm", record.State{Webhook: "crm", PauseReasons: []record.PauseReason{record.PauseFailures}}.Marshal())
	s.run(t, "webhooks", "resume", "crm", "--follow").wantCode(t, exitFailed).wantErr(t, "No event of crm is parked any more, but it is paused (consecutive_failures)", "webhooks test crm")
	// All are out. On a terminal it follows without being asked.
	s.terminal = true
	put(t, s, "webhooks.state", "crm", nil)
	s.run(t, "webhooks", "resume", "crm").wantCode(t, exitOK).wantOut(t, "resume of crm done").wantErr(t, "No event of crm is parked any more")
	count(3)
	s.run(t, "webhooks", "resume", "crm", "--follow=false").wantCode(t, exitOK)
}

func TestDrainSpeed(t *testing.T) {
	at := time.Now()
	var d drainSpeed
	for _, step := range []struct {
		second int
		left   int64
		want   time.Duration
	}{
		{0, 100, 0},
		{1, 90, 9 * time.Second},
		{2, 80, 8 * time.Second},
		{3, 110, 0},
		{40, 100, 370 * time.Second}, // from 110: what lies further back than the window does not count, but for one
		{50, 50, 10 * time.Second},
		{51, 0, 0},
	} {
		if got := d.eta(at.Add(time.Duration(step.second)*time.Second), step.left); got != step.want {
			t.Errorf("after %d s, %d left: %s, want %s", step.second, step.left, got, step.want)
		}
	}
}
