package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestTopicsFromNothingToDone(t *testing.T) {
	s := newClusterShell(t)
	plan := s.run(t, "topics", "plan").wantCode(t, exitFailed).wantOut(t, "TOPIC", "webhooks.events", "webhooks.retry-16s", "create")
	if strings.Contains(plan.errOut, "reenvio:") {
		t.Errorf("changes to make are no error: %s", plan.errOut)
	}
	changes := s.run(t, "topics", "plan", "-o", "json").wantCode(t, exitFailed).array(t)
	if first := changes[0].(map[string]any); first["topic"] != "webhooks.events" || first["change"] != "create" || first["to"] == "" {
		t.Errorf("first change: %v", first)
	}

	s.run(t, "topics", "apply").wantCode(t, exitUsage).wantErr(t, "--yes")
	s.terminal, s.stdin = true, "no\n"
	s.run(t, "topics", "apply").wantCode(t, exitFailed).wantErr(t, "Make these", "Nothing was done")
	s.run(t, "topics", "plan").wantCode(t, exitFailed)
	s.stdin = "y\n"
	s.run(t, "topics", "apply").wantCode(t, exitOK).wantErr(t, "done: create webhooks.events")
	s.terminal = false

	s.run(t, "topics", "plan").wantCode(t, exitOK).wantOut(t, "Nothing to do")
	if left := s.run(t, "topics", "plan", "-o", "json").wantCode(t, exitOK).array(t); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.run(t, "topics", "apply").wantCode(t, exitOK)
}

func TestTopicsThatCannotBeMended(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	plan := s.run(t, "topics", "plan", "--topics.partitions=6").wantCode(t, exitFailed).wantOut(t, "partitions").wantErr(t, "webhooks.events, webhooks.retry-2s, ", "can't be mended here", "topics.prefix")
	if strings.Count(plan.errOut, "can't be mended here") != 1 {
		t.Errorf("what is common to all topics is said again and again:\n%s", plan.errOut)
	}
	for _, change := range s.run(t, "topics", "plan", "--topics.partitions=6", "-o", "json").wantCode(t, exitFailed).array(t) {
		if hint, _ := change.(map[string]any)["hint"].(string); !strings.Contains(hint, "topics.prefix") {
			t.Errorf("no way out: %v", change)
		}
	}
	s.terminal = true // but nobody is asked about what can't be done
	s.run(t, "topics", "apply", "--topics.partitions=6").wantCode(t, exitFailed).wantErr(t, "nothing was changed")
}

// setRetention does what an operator does with Kafka's own tools.
func (s *shell) setRetention(t *testing.T, topic, ms string) {
	t.Helper()
	client := s.client(t)
	if _, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: &ms}}, topic); err != nil {
		t.Fatal(err)
	}
}

// Whoever lengthened a retention is told before it is set back.
func TestAShorterRetentionIsWarnedOf(t *testing.T) {
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.setRetention(t, "webhooks.parked", "2592000000")
	for _, command := range []string{"plan", "apply"} {
		s.run(t, "topics", command).wantErr(t, "webhooks.parked: from retention.ms=2592000000 to retention.ms=1209600000 is shorter", "events that wait")
	}
}

func TestAWrongSetOfTopicsIsRefused(t *testing.T) {
	s := newClusterShell(t)
	create := []string{"webhooks", "create", "--id", "a", "--url", "https://a.example/"}
	s.run(t, create...).wantCode(t, exitFailed).wantErr(t, "webhooks.events is missing", "reenvio topics apply")
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, append(create, "--topics.partitions=6")...).wantCode(t, exitFailed).wantErr(t, "webhooks.events has 3 partitions", "; the same of webhooks.retry-2s, ", "reenvio topics plan")
}

func TestAMissingBrokerIsToldInTime(t *testing.T) {
	s := newShell(t)
	began := time.Now()
	s.run(t, "webhooks", "list", "--kafka.brokers=127.0.0.1:1,127.0.0.1:2").wantCode(t, exitFailed).
		wantErr(t, "127.0.0.1:1, 127.0.0.1:2", "flag --kafka.brokers", "refused")
	if took := time.Since(began); took > patience+time.Second {
		t.Errorf("it took %v", took)
	}
}
