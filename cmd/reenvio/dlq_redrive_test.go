package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/schemas/schematest"
)

// wantSchema: the output is what the schema of that name says.
func (o outcome) wantSchema(t *testing.T, name string) outcome {
	t.Helper()
	if err := schematest.Validate(name, []byte(o.out)); err != nil {
		t.Errorf("reenvio %s: %v\n%s", strings.Join(o.args, " "), err, o.out)
	}
	return o
}

func TestDLQStats(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "dlq", "stats").wantCode(t, exitOK).wantErr(t, "No dead letter matches")
	if empty := s.run(t, "dlq", "stats", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-stats").object(t); empty["count"] != 0.0 || len(empty["reasons"].([]any)) != 0 {
		t.Errorf("got %v", empty)
	}
	now := time.Now()
	bury(t, s, map[string]record.Death{
		"e1": {Reason: record.AttemptsExhausted, At: record.At(now.Add(-time.Minute))},
		"e2": {Reason: record.AttemptsExhausted, At: record.At(now.Add(-time.Minute))},
		"e3": {Reason: record.Discarded, At: record.At(now.Add(-3 * 24 * time.Hour))},
	})
	s.run(t, "dlq", "stats").wantCode(t, exitOK).wantOut(t, "Dead letters  2", "attempts_exhausted  2", "crm      2", "HOUR")
	s.run(t, "dlq", "stats", "--since", "7d").wantCode(t, exitOK).wantOut(t, "Dead letters  3", "discarded", "DAY", now.Add(-3*24*time.Hour).Format(time.DateOnly))
	all := s.run(t, "dlq", "stats", "--since", "7d", "--reason", "discarded", "--reason", "expired", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-stats").object(t)
	if all["count"] != 1.0 || all["per"] != "day" || all["webhooks"].([]any)[0].(map[string]any)["webhook"] != "crm" {
		t.Errorf("got %v", all)
	}
	if list := s.run(t, "dlq", "list", "--since", "24h", "-o", "json").wantCode(t, exitOK).array(t); len(list) != 2 {
		t.Errorf("list and stats disagree: %v", list)
	}
}

func TestOfManyWebhooksStatsNameTheTopOnes(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	letters := map[string]record.Death{}
	for n := range topWebhooks + 3 {
		letters[strings.Repeat("w", n+1)+"/e"] = record.Death{Reason: record.Expired, At: record.At(time.Now())}
	}
	buryFor(t, s, func(id string) string { return strings.TrimSuffix(id, "/e") }, letters)
	s.run(t, "dlq", "stats").wantCode(t, exitOK).wantOut(t, "(others)")
	for args, want := range map[string]int{"": topWebhooks, "--all": topWebhooks + 3} {
		stats := s.run(t, append([]string{"dlq", "stats", "-o", "json"}, strings.Fields(args)...)...).wantCode(t, exitOK).wantSchema(t, "dlq-stats").object(t)
		if got := len(stats["webhooks"].([]any)); got != want {
			t.Errorf("%q names %d webhooks, want %d", args, got, want)
		}
	}
}

// The analyst's way: what is dead, what a redrive would do, the endpoint is mended, the redrive, delivered.
func TestRedriveDeliversAfterTheEndpointIsMended(t *testing.T) {
	s := newClusterShell(t)
	s.environ = append(s.environ, "REENVIO_EGRESS__ALLOW=127.0.0.1", "REENVIO_EGRESS__ALLOW_HTTP=true", "REENVIO_KAFKA__INSTANCE_ID=one")
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	receiver := kafkatest.NewReceiver(t, listener, kafkatest.Always(http.StatusBadRequest))
	s.run(t, "webhooks", "create", "--id", "crm", "--url", receiver.URL("crm"), "--retry-on", "transient").wantCode(t, exitOK)
	s.run(t, "send", "--webhook", "crm", "--id", "e1", "--data", "hello").wantCode(t, exitOK)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() { ended <- s.runCtx(ctx, "dispatcher", "--admin.listen=127.0.0.1:0") }()
	defer func() { stop(); (<-ended).wantCode(t, exitOK) }()
	for len(s.run(t, "dlq", "list", "-o", "json").wantCode(t, exitOK).array(t)) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the event does not die")
		}
	}

	dry := s.run(t, "dlq", "redrive", "--webhook", "crm", "--reason", "permanent_status", "--dry-run", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-redrive").object(t)
	if dry["ready"] != 1.0 || dry["sent"] != 0.0 || dry["dry_run"] != true {
		t.Errorf("dry run: %v", dry)
	}
	s.run(t, "dlq", "redrive", "--webhook", "crm", "--dry-run").wantCode(t, exitOK).wantOut(t, "To be sent    1", "permanent_status  1").wantErr(t, "Nothing was sent")

	s.run(t, "dlq", "redrive", "--id", "e1", "--id", "nope", "--dry-run", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-redrive").wantErr(t, "No dead letter matches --id nope.")

	receiver.Answer("crm", kafkatest.Always(http.StatusOK))
	person := *s
	person.terminal, person.stdin = true, "n\n"
	person.run(t, "dlq", "redrive", "--webhook", "crm").wantCode(t, exitFailed).wantErr(t, "permanent_status  1", "Send 1 event again?", "Nothing was done")
	person.stdin = "y\n"
	person.run(t, "dlq", "redrive", "--webhook", "crm", "--run", "mended").wantCode(t, exitOK).wantOut(t, "Run           mended", "Sent          1").wantErr(t, "No run mended has sent", "Run mended")
	var got kafkatest.Request
	if err := receiver.Await(t.Context(), func(r kafkatest.Request) bool { got = r; return r.Status == http.StatusOK }); err != nil {
		t.Fatal(err)
	}
	if got.EventID != "e1" || string(got.Body) != "hello" || got.Attempt != 1 {
		t.Errorf("got %+v", got)
	}
	again := s.run(t, "dlq", "redrive", "--webhook", "crm", "--run", "mended", "--yes", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-redrive").object(t)
	if again["sent"] != 0.0 || again["sent_before"] != 1.0 {
		t.Errorf("the same run again: %v", again)
	}
	if strings.Contains(s.run(t, "dlq", "redrive", "--webhook", "crm", "--run", "mended", "--yes").wantCode(t, exitOK).errOut, "No run mended") {
		t.Error("a run that goes on is called new")
	}
	for { // until the delivery is in the log
		o := s.run(t, "dlq", "redrive", "--id", "e1", "--yes").wantCode(t, exitOK).wantOut(t, "Sent          0")
		if strings.Contains(o.out, "delivered_since") {
			break
		}
		o.wantOut(t, "already_redriven")
		if t.Context().Err() != nil || t.Failed() {
			t.Fatal("the delivery is not seen")
		}
	}
	s.run(t, "dlq", "redrive", "--id", "e1", "--dry-run", "-o", "json").wantCode(t, exitOK).wantSchema(t, "dlq-redrive").wantOut(t, "delivered_since")
	s.run(t, "dlq", "redrive", "--id", "e1", "--force", "--dry-run").wantCode(t, exitOK).wantOut(t, "To be sent    1")
	s.run(t, "dlq", "redrive", "--id", "none", "--yes").wantCode(t, exitOK).wantErr(t, "No dead letter matches")
}

func TestProgressOfLetters(t *testing.T) {
	for want, got := range map[string]string{
		"sending: 100 of 1000, 50 a second, about 18s left": progressText("sending", 100, 1000, 2*time.Second),
		"sending: 0 of 1000, 0 a second":                    progressText("sending", 0, 1000, time.Second),
		"sending: 1000 of 1000, 500 a second":               progressText("sending", 1000, 1000, 2*time.Second),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
