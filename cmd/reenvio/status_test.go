package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/schemas/schematest"
)

func TestStatusWithoutADispatcher(t *testing.T) {
	s := newClusterShell(t)
	for _, command := range []string{"status", "retry-tiers"} {
		if got := s.run(t, command).wantCode(t, exitFailed).wantErr(t, "webhooks.events is missing", "reenvio topics apply"); got.out != "" {
			t.Errorf("%s", got.out)
		}
		s.run(t, command, "all").wantCode(t, exitUsage).wantErr(t, "takes no argument")
	}
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "crm", "--url", "https://crm.example/secret-path").wantCode(t, exitOK)
	s.run(t, "send", "--webhook", "crm", "--id", "e1", "--data", "{}").wantCode(t, exitOK)

	got := s.run(t, "status").wantCode(t, exitOK).wantOut(t, "ONE THING NEEDS A PERSON\n! No dispatcher runs", "Next: start one: reenvio dispatcher",
		"0 of 3 numbers owned by 0 dispatchers; backlog 1;", "crm", "e1", "no_owner")
	if strings.Contains(got.out, "secret-path") {
		t.Errorf("the path of a URL is shown:\n%s", got.out)
	}
	text := s.run(t, "status", "-o", "json").wantCode(t, exitOK)
	if err := schematest.Validate("status", []byte(text.out)); err != nil {
		t.Error(err)
	}
	if o := text.object(t); o["ok"] != false || o["backlog"] != 1.0 {
		t.Errorf("got %v", o)
	}
	s.run(t, "retry-tiers").wantCode(t, exitOK).wantOut(t, "TIER", "2s ", "16s ")
	tiers := s.run(t, "retry-tiers", "-o", "json").wantCode(t, exitOK)
	if err := schematest.Validate("retry-tiers", []byte(tiers.out)); err != nil || len(tiers.array(t)) != 4 {
		t.Errorf("%v\n%s", err, tiers.out)
	}
}

// A set of topics that a dispatcher would refuse is a problem among others: the rest must be seen all the same.
func TestStatusOfAWrongSetOfTopics(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.setRetention(t, "webhooks.retry-2s", "1000")
	s.run(t, "status").wantCode(t, exitOK).wantOut(t, "2 THINGS NEED A PERSON", "A dispatcher would refuse to start", "webhooks.retry-2s has retention.ms=1000", "Next: reenvio topics plan", "No dispatcher runs")
}

func TestWhatStatusPrints(t *testing.T) {
	at := record.At(time.Now().Add(-time.Hour))
	number := int32(3)
	o := &overview.Overview{
		At: record.At(time.Now()), Headline: "11 of 12 numbers owned", Partitions: 12,
		Problems:    []overview.Problem{{Problem: "Number 3 has\x1b[31m no owner.", NextStep: "look"}, {Problem: "Another since " + at.String() + "."}},
		Dispatchers: []overview.Dispatcher{{Instance: "one", Host: "10.0.0.1", Numbers: []int32{0, 1, 2, 4}}, {Instance: "idle"}},
		Numbers: []overview.Number{
			{Number: 1, Owner: "one"},
			{Number: 0, IncompleteOffset: 40, IncompleteReason: overview.NoOwner},
			{Number: 2, Owner: "one", Backlog: 7, BacklogIsBound: true, CommandsWaiting: 2, IncompleteOffset: 41, IncompleteSince: record.At(time.Now()), IncompleteWebhook: "young", IncompleteReason: overview.InFlight},
			{Number: 3, Backlog: 1, IncompleteOffset: 42, IncompleteSince: at, IncompleteWebhook: "old", IncompleteEventID: "e9", IncompleteReason: overview.NoOwner, IncompleteDetail: "its last owner was two, until " + at.String()},
		},
		RetryTiers:        []overview.Tier{{Tier: "2s"}, {Tier: "1m", Waiting: 5, Overdue: 2, OverdueSince: at, OverdueNumber: &number, OverdueWebhook: "late"}},
		WebhooksPaused:    30,
		Paused:            []overview.Paused{{Webhook: "down", PauseReasons: []record.PauseReason{record.PauseFailures}, PausedAt: at, LastStatus: 503, Parked: 9, NextStep: "reenvio webhooks resume down"}},
		WebhooksReturning: 1,
		Returning:         []overview.Returning{{Webhook: "back", Parked: 4}},
		Holds:             []overview.Hold{{Scope: record.HoldTenant, Value: "acme", By: "ana", At: at, Reason: "night", NextStep: "reenvio release --tenant acme"}},
		DeadByReason:      []overview.Dead{{Reason: record.Expired, Count: 8}, {Count: 1}},
		Notes:             []string{"something was not counted since " + at.String()},
	}
	var out bytes.Buffer
	if err := printOverview(&out, o); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	rest := text
	for _, part := range []string{ // in this order
		"2 THINGS NEED A PERSON", "! Number 3 has·[31m no owner.\n  Next: look", "! Another since " + timeText(at) + ".\n11 of 12 numbers owned.",
		"HELD BY HAND", "tenant acme", "(1h0m0s ago)", "ana", "night", "reenvio release --tenant acme",
		"0 to 2, 4", "idle", "none",
		"3       none   1", "42", "old", "e9", "no_owner (its last owner was two, until " + timeText(at) + ")", "2       one    <= 7     2", "young", "in_flight",
		"1m (drained)", "late", "down", "consecutive_failures", "503", "9 ", "reenvio webhooks resume down", "... and 29 more; -o json",
		"back", "expired", "8 ", "reenvio dlq list --reason expired", "no dead letter of Reenvio", "Note: something was not counted since " + timeText(at) + ".",
	} {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q is missing, or stands too early:\n%s", part, text)
		}
		rest = after
	}
	if strings.Contains(text, "\n1  ") || strings.Contains(text, "\n0  ") || strings.Contains(text, "2s") {
		t.Error("what has nothing to say is shown")
	}
	if t.Failed() {
		t.Log(text)
	}
}
