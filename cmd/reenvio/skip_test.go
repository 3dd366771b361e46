package main

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestSkip(t *testing.T) {
	s := newWebhookShell(t)
	sent := s.run(t, "send", "--webhook", "crm", "--id", "order-1", "--data", "{}", "-o", "json").wantCode(t, exitOK).object(t)
	place := fmt.Sprintf("webhooks.events/%v/%v", sent["partition"], sent["offset"])
	parked := fmt.Sprintf("webhooks.parked/%d/%d", numberOf(t, "crm"), putParked(t, s, "crm", "order-2", time.Now()))

	s.run(t, "skip", place).wantCode(t, exitUsage).wantErr(t, "--to-dlq", "dead letter")
	s.run(t, "skip", place, "--to-dlq").wantCode(t, exitUsage).wantErr(t, "order-1", "crm", "--yes")
	s.run(t, "skip", parked, "--to-dlq").wantCode(t, exitUsage).wantErr(t, "order-2", "attempts so far: 2", "discarded")
	waits := s.run(t, "skip", place, "--to-dlq", "--yes", "--wait", "300ms").wantCode(t, exitFailed).wantOut(t, "no dispatcher owns number ")
	if !regexp.MustCompile(`The command [A-Z2-7]{26} is written`).MatchString(waits.errOut) {
		t.Errorf("it doesn't name the command: %s", waits.errOut)
	}

	got := answerCommands(t, s, map[record.Action]record.Result{record.ActionSkip: {Result: record.ResultDone, Detail: "it is dead"}})
	<-got // the one that was pending
	s.terminal, s.stdin = true, "y\n"
	s.run(t, "skip", place, "--to-dlq", "--reason", "poison").wantCode(t, exitOK).wantErr(t, "[y/N]").wantOut(t, place, "order-1", "done: it is dead")
	if c := <-got; c.Value != place || c.Reason != "poison" || c.Webhook != "" {
		t.Errorf("command: %+v", c)
	}
	s.terminal = false
	o := s.run(t, "skip", parked, "--to-dlq", "--yes", "-o", "json").wantCode(t, exitOK).object(t)
	if o["place"] != parked || o["webhook"] != "crm" || o["event_id"] != "order-2" || o["result"] != "done" {
		t.Errorf("got %v", o)
	}

	s.run(t, "skip", fmt.Sprintf("webhooks.events/%v/99", sent["partition"]), "--to-dlq", "--yes").wantCode(t, exitFailed).wantErr(t, "there is no event at webhooks.events/", "the partition holds 0 to ")
	s.run(t, "skip", "webhooks.retry-2s/0/0", "--to-dlq", "--yes").wantCode(t, exitFailed).wantErr(t, "there is no event at webhooks.retry-2s/0/0", "the partition is empty", "reenvio events get")
	s.run(t, "skip", "webhooks.dlq/0/0", "--to-dlq", "--yes").wantCode(t, exitUsage).wantErr(t, "no event waits in the topic webhooks.dlq", "webhooks.parked")
	s.run(t, "skip", "webhooks.events/7/0", "--to-dlq", "--yes").wantCode(t, exitUsage).wantErr(t, "no partition 7")
}
