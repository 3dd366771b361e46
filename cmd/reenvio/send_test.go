package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// events reads everything on the events topic.
func events(t *testing.T, s *shell, n int) []*record.Delivery {
	t.Helper()
	client := s.client(t, kgo.ConsumeTopics("webhooks.events"))
	var all []*record.Delivery
	for len(all) < n {
		fetches := client.PollFetches(t.Context())
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetches.Records() {
			d, err := record.FromEvent(r)
			if err != nil {
				t.Error(err)
			}
			all = append(all, d)
		}
	}
	return all
}

func TestSend(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "send", "--webhook", "crm", "--data", "x").wantCode(t, exitFailed).wantErr(t, "reenvio topics apply")
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "send", "--data", "x").wantCode(t, exitUsage).wantErr(t, "--webhook")
	s.run(t, "send", "--webhook", "crm", "--id", "no blanks").wantCode(t, exitUsage).wantErr(t, "event id")
	s.run(t, "send", "--webhook", "crm", "--data", strings.Repeat("x", 1<<20)).wantCode(t, exitUsage).wantErr(t, strconv.Itoa(record.MaxNewEventBytes))

	sent := s.run(t, "send", "--webhook", "crm", "--id", "e1", "--type", "order.paid", "--data", `{"a":1}`, "-o", "json").wantCode(t, exitOK).object(t)
	if sent["id"] != "e1" || sent["webhook"] != "crm" || sent["topic"] != "webhooks.events" || sent["offset"] != 0.0 || sent["partition"] == nil {
		t.Errorf("got %v", sent)
	}
	s.stdin = "from a pipe"
	s.run(t, "send", "--webhook", "crm", "--data", "-").wantCode(t, exitOK).wantOut(t, "Partition", "Offset")
	s.run(t, "send", "--webhook", "crm", "--data", "@"+writeFile(t, "body", "from a file")).wantCode(t, exitOK)
	s.run(t, "send", "--webhook", "crm", "--data", "").wantCode(t, exitOK)
	s.run(t, "send", "--webhook", "crm").wantCode(t, exitOK).wantErr(t, "Warning: there is no such webhook: crm", "webhooks list")
	s.run(t, "webhooks", "create", "--id", "crm", "--url", hook).wantCode(t, exitOK)
	if o := s.run(t, "send", "--webhook", "crm").wantCode(t, exitOK); o.errOut != "" {
		t.Errorf("stderr: %s", o.errOut)
	}

	all := events(t, s, 5)
	for i, want := range []string{`{"a":1}`, "from a pipe", "from a file", "", ""} {
		if got := string(all[i].Value); got != want || all[i].Webhook != "crm" || all[i].IDDerived {
			t.Errorf("event %d: %q, %+v", i, got, all[i].Event)
		}
	}
	if all[0].ID != "e1" || all[0].Type != "order.paid" || all[3].Value == nil || all[4].Value != nil {
		t.Errorf("first: %+v; empty is empty (%v) and absent is null (%v)", all[0].Event, all[3].Value, all[4].Value)
	}
}

func TestSendAsksOnATerminal(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.terminal, s.stdin = true, "\n"
	s.run(t, "send", "--webhook", "crm", "--data", "1").wantCode(t, exitFailed).wantErr(t, "Send this event (reenvio.test, 1 byte) to crm?", "Nothing was done")
	s.stdin = "yes\n"
	s.run(t, "send", "--webhook", "crm", "--data", "2").wantCode(t, exitOK)
	s.run(t, "send", "--webhook", "crm", "--data", "3", "--yes").wantCode(t, exitOK)
	if all := events(t, s, 2); string(all[0].Value) != "2" || string(all[1].Value) != "3" {
		t.Errorf("got %s and %s", all[0].Value, all[1].Value)
	}
}
