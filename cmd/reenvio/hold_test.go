package main

import (
	"slices"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestHoldAsksEveryNumber(t *testing.T) {
	s := newWebhookShell(t, "--tenant", "acme")
	got := answerCommands(t, s, map[record.Action]record.Result{
		record.ActionHold:    {Result: record.ResultDone},
		record.ActionRelease: {Result: record.ResultRefused, Detail: "it is broken"},
	})
	s.run(t, "hold", "--tenant", "acme", "--reason", "migration").wantCode(t, exitOK).wantOut(t, "held: 3 of 3 numbers")
	three := func() {
		for range 3 {
			<-got
		}
	}
	for range 3 {
		if c := <-got; c.Action != record.ActionHold || c.Scope != record.HoldTenant || c.Value != "acme" || c.Reason != "migration" || c.Webhook != "" || c.By == "" {
			t.Errorf("command: %+v", c)
		}
	}
	held := s.run(t, "hold", "--host", "CRM.example.com", "-o", "json").wantCode(t, exitOK)
	if o := held.object(t); o["result"] != "done" || o["scope"] != "host" || o["value"] != "crm.example.com" || len(o["numbers"].([]any)) != 3 {
		t.Errorf("got %v", o)
	}
	three()
	if held.errOut != "" {
		t.Errorf("stderr: %s", held.errOut)
	}
	s.run(t, "hold", "--tenant", "ac ne").wantCode(t, exitOK).wantErr(t, "No webhook has the tenant ac ne", "webhooks list", "reenvio release --tenant 'ac ne'")
	three()
	s.run(t, "hold", "--all").wantCode(t, exitOK).wantOut(t, "held: 3 of 3")
	three()
	s.run(t, "release", "--all").wantCode(t, exitFailed).wantOut(t, "number 2 refused: it is broken").wantErr(t, "No hold of all is there", "reenvio status")

	// One webhook has its own owner.
	three()
	s.run(t, "hold", "--webhook", "crm").wantCode(t, exitOK).wantOut(t, "hold of crm done")
	if c := <-got; c.Webhook != "crm" || c.Scope != record.HoldWebhook || c.Value != "crm" {
		t.Errorf("command: %+v", c)
	}
	s.run(t, "hold", "--webhook", "nobody").wantCode(t, exitFailed).wantErr(t, "nobody", "webhooks list")
}

// What stops requests works while topics are not as they should be: it may be why.
func TestHoldWithAWrongSetOfTopics(t *testing.T) {
	s := newWebhookShell(t)
	answerCommands(t, s, map[record.Action]record.Result{record.ActionHold: {Result: record.ResultDone}, record.ActionPause: {Result: record.ResultDone}})
	const wrong = "--retry.tiers=2s,4s,8s,16s,1m"
	s.run(t, "send", "--webhook", "crm", "--data", "x", wrong).wantCode(t, exitFailed).wantErr(t, "webhooks.retry-1m is missing")
	s.run(t, "hold", "--all", wrong).wantCode(t, exitOK).wantOut(t, "held: 3 of 3 numbers")
	s.run(t, "webhooks", "pause", "crm", wrong).wantCode(t, exitOK).wantOut(t, "pause of crm done")
}

func TestWhatWasNotHeldIsNotReleased(t *testing.T) {
	s := newWebhookShell(t)
	answerCommands(t, s, map[record.Action]record.Result{record.ActionRelease: {Result: record.ResultDone}})
	if o := s.run(t, "release", "--host", "typo").wantCode(t, exitOK).wantErr(t, "No hold of host typo is there"); o.out != "" {
		t.Errorf("stdout: %s", o.out)
	}
	produce(t, s, numberRecord(t, "crm", record.NumberState{Holds: []record.Hold{{Scope: record.HoldHost, Value: "crm.example.com"}}}))
	s.run(t, "release", "--host", "crm.example.com").wantCode(t, exitOK).wantOut(t, "released: 3 of 3 numbers")
}

func TestHoldWithoutADispatcherIsPending(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "hold", "--all", "--wait", "300ms").wantCode(t, exitFailed).
		wantOut(t, "held: 0 of 3 numbers", "pending: no dispatcher owns numbers 0 to 2,").wantErr(t, "is done there when")
	o := s.run(t, "release", "--all", "--wait", "300ms", "-o", "json").wantCode(t, exitFailed).object(t)
	if o["result"] != "pending" || o["action"] != "release" {
		t.Errorf("got %v", o)
	}
	s.run(t, "hold", "--webhook", "crm", "--wait", "300ms").wantCode(t, exitFailed).wantOut(t, "pending: no dispatcher owns number ")
}

func TestAHoldIsShown(t *testing.T) {
	s := newWebhookShell(t, "--tenant", "acme")
	at := record.At(time.Now().Add(-time.Hour))
	notes := record.NumberState{Holds: []record.Hold{
		{Scope: record.HoldTenant, Value: "acme", By: "cli:ann", At: at, Reason: "migration"}, {Scope: record.HoldTenant, Value: "other", By: "cli:bob", At: at},
	}}
	produce(t, s, numberRecord(t, "crm", notes))
	putState(t, s, record.State{Webhook: "crm", Hold: &record.Hold{By: "cli:cid", At: at}})
	get := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).
		wantOut(t, "active, held", "tenant acme, by cli:ann, since", "(1h0m0s ago): migration", "webhook, by cli:cid", "`reenvio release --webhook crm`", "`reenvio release --tenant acme`")
	if slices.Contains([]byte(get.out), 0x1b) {
		t.Error("escape")
	}
	s.run(t, "webhooks", "list").wantCode(t, exitOK).wantOut(t, "active, held")
	view := parse[webhookView](t, s.run(t, "webhooks", "get", "crm", "-o", "json").wantCode(t, exitOK))
	if len(view.Holds) != 1 || view.Holds[0].Value != "acme" || view.State.Hold == nil {
		t.Errorf("got %+v", view)
	}
}
