package main

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

const hook = "https://crm.example.com/hooks/s3cret-path?key=s3cret-query"

func TestCreateListGet(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "list").wantCode(t, exitOK).wantErr(t, "no webhook yet")
	if list := s.run(t, "webhooks", "list", "-o", "json").wantCode(t, exitOK).array(t); len(list) != 0 {
		t.Errorf("got %v", list)
	}

	created := s.run(t, "webhooks", "create", "--id", "crm", "--url", hook, "--tenant", "acme", "--header", "Authorization: Bearer s3cret-token",
		"--timeout", "10s", "--auto-pause-after", "0", "--schedule", "1s,5s", "--event-types", "order.*,invoice.paid", "--enabled=false").
		wantCode(t, exitOK).wantOut(t, "crm", "10s", "never", "1s, 5s", "order.*, invoice.paid", "whsec_")
	_, secret, _ := strings.Cut(created.out, "whsec_")
	secret = "whsec_" + strings.TrimSpace(secret)

	get := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "active", "crm.example.com", "(redacted)", "acme")
	object := s.run(t, "webhooks", "get", "crm", "-o", "json").wantCode(t, exitOK)
	if listed := s.run(t, "webhooks", "list", "-o", "json").array(t); listed[0].(map[string]any)["endpoint"].(map[string]any)["max_attempts"] != 5.0 {
		t.Errorf("list: %v", listed)
	}
	list := s.run(t, "webhooks", "list").wantCode(t, exitOK).wantOut(t, "crm", "active", "crm.example.com")
	for _, o := range []outcome{created, get, object, list} {
		if strings.Contains(o.out+o.errOut, "s3cret") {
			t.Errorf("%v shows what is secret:\n%s", o.args, o.out)
		}
	}
	if strings.Contains(get.out+object.out+list.out, "whsec_") || strings.Contains(object.out, "enc:") {
		t.Error("the signing secret is shown after its creation")
	}

	view := object.object(t)
	endpoint, state := view["endpoint"].(map[string]any), view["state"].(map[string]any)
	if endpoint["id"] != "crm" || endpoint["timeout"] != "10s" || endpoint["auto_pause_after"] != 0.0 || endpoint["enabled"] != false || endpoint["max_attempts"] != 5.0 || endpoint["max_in_flight"] != 1.0 || endpoint["jitter"] != "additive" {
		t.Errorf("endpoint: %v", endpoint)
	}
	if state["status"] != "active" || state["webhook"] != "crm" {
		t.Errorf("state: %v", state)
	}
	if !strings.HasPrefix(endpoint["updated_by"].(string), "cli:") {
		t.Errorf("updated_by: %v", endpoint["updated_by"])
	}

	s.run(t, "webhooks", "get", "crm", "--reveal").wantCode(t, exitOK).wantOut(t, hook, "Bearer s3cret-token", secret)
	s.run(t, "webhooks", "get", "crm", "--reveal", "--secrets.keyset_file=").wantCode(t, exitUsage).wantErr(t, "secrets.keyset_file")
	s.run(t, "webhooks", "create", "--id", "crm", "--url", hook).wantCode(t, exitFailed).wantErr(t, "crm exists already", "--id")
	s.run(t, "webhooks", "get", "nobody").wantCode(t, exitFailed).wantErr(t, "nobody", "reenvio webhooks list")
}

func TestCreateWithAGivenSecretAndNoID(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	file := "@" + writeFile(t, "secret", secret+"\n")
	s.stdin = secret + "\n"
	for _, given := range []string{secret, file, "-"} {
		view := s.run(t, "webhooks", "create", "--url", "https://a.example/", "--secret", given, "-o", "json").wantCode(t, exitOK).object(t)
		id := view["endpoint"].(map[string]any)["id"].(string)
		if view["secret"] != nil || !strings.HasPrefix(id, "wh_") {
			t.Errorf("%s: id %s, secret %v", given, id, view["secret"])
		}
		s.run(t, "webhooks", "get", id, "--reveal").wantCode(t, exitOK).wantOut(t, secret)
	}
	s.run(t, "webhooks", "create", "--url", "https://a.example/", "--secret", "@/nowhere").wantCode(t, exitUsage).wantErr(t, "/nowhere")
}

func TestPauseWithoutADispatcherIsPending(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "pause", "nobody").wantCode(t, exitFailed).wantErr(t, "nobody")
	s.run(t, "webhooks", "create", "--id", "crm", "--url", hook).wantCode(t, exitOK)
	s.run(t, "webhooks", "pause", "crm", "--wait", "300ms").wantCode(t, exitFailed).wantOut(t, "pending: no dispatcher owns number ")
	result := s.run(t, "webhooks", "resume", "crm", "--wait", "300ms", "-o", "json").wantCode(t, exitFailed).object(t)
	if result["result"] != "pending" || result["webhook"] != "crm" || result["action"] != "resume" {
		t.Errorf("got %v", result)
	}
}

func TestTheOwnersAnswerIsShown(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "crm", "--url", hook).wantCode(t, exitOK)
	got := answerCommands(t, s, map[record.Action]record.Result{
		record.ActionPause:  {Result: record.ResultDone},
		record.ActionResume: {Result: record.ResultRefused, Detail: "it is not paused"},
	})
	s.run(t, "webhooks", "pause", "crm", "--reason", "maintenance").wantCode(t, exitOK).wantOut(t, "pause of crm done")
	if command := <-got; command.Reason != "maintenance" || !strings.HasPrefix(command.By, "cli:") {
		t.Errorf("command: %+v", command)
	}
	s.run(t, "webhooks", "resume", "crm").wantCode(t, exitFailed).wantOut(t, "resume of crm refused: it is not paused")
}

// answerCommands stands in for the dispatcher that owns all numbers.
func answerCommands(t *testing.T, s *shell, answers map[record.Action]record.Result) <-chan record.Command {
	t.Helper()
	client := s.client(t, kgo.ConsumeTopics("webhooks.commands"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	got := make(chan record.Command, 10)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, r := range client.PollFetches(ctx).Records() {
				command, err := record.ParseCommand(r.Value)
				if err != nil {
					continue // our own answer
				}
				got <- command
				answer := answers[command.Action]
				answer.ID = command.ID
				client.ProduceSync(ctx, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: answer.Marshal()})
			}
		}
	}()
	return got
}
