package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestAWarningOfWhatEgressForbids(t *testing.T) {
	s := newClusterShell(t)
	s.environ = append(s.environ, "REENVIO_EGRESS__ALLOW_HTTP=true", "REENVIO_EGRESS__DENY=denied.example", "REENVIO_EGRESS__ALLOW=10.9.0.0/16")
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	for url, warns := range map[string]bool{
		"http://10.0.0.1/s3cret": true, "http://10.9.0.1/": false, "http://localhost:8080/": true, "https://[fd00::1]:8443/": true, "https://denied.example/": true, "https://93.184.216.34/": false, "https://crm.example.com/": false,
	} {
		o := s.run(t, "webhooks", "create", "--url", url).wantCode(t, exitOK)
		if warned := strings.Contains(o.errOut, "egress.allow"); warned != warns || strings.Contains(o.errOut, "s3cret") {
			t.Errorf("%s: %s", url, o.errOut)
		}
	}
	s.run(t, "webhooks", "create", "--id", "crm", "--url", hook).wantCode(t, exitOK)
	s.run(t, "webhooks", "update", "crm", "--url", "http://10.0.0.1:81/x").wantCode(t, exitOK).wantErr(t, "10.0.0.1:81", "not public", "the dispatchers' egress", "url_blocked")
	if o := s.run(t, "webhooks", "update", "crm", "--timeout", "5s").wantCode(t, exitOK); o.errOut != "" {
		t.Errorf("nothing about the URL has changed: %s", o.errOut)
	}
}

// Of a webhook that was written with another keyset, the host is known.
func TestAWebhookOfAnotherKeyset(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "secrets", "keygen", "-f", "other.json").wantCode(t, exitOK)
	for _, keyset := range []string{"other.json", ""} {
		o := s.run(t, "webhooks", "get", "crm", "--secrets.keyset_file="+keyset).wantCode(t, exitOK).wantOut(t, "crm.example.com (only the host can be shown")
		if strings.Contains(o.out, "//") {
			t.Errorf("it looks like a URL:\n%s", o.out)
		}
		e := parse[webhookView](t, s.run(t, "webhooks", "get", "crm", "-o", "json", "--secrets.keyset_file="+keyset).wantCode(t, exitOK)).Endpoint
		if e.URL != redacted || e.URLHost != "crm.example.com" {
			t.Errorf("url %q, url_host %q", e.URL, e.URLHost)
		}
	}
}

func TestAWebhookThatAskedToBeLeftAlone(t *testing.T) {
	s := newWebhookShell(t)
	state := record.State{Webhook: "crm", HoldUntil: record.At(time.Now().Add(time.Hour))}
	putState(t, s, state)
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "Left alone until", "as its endpoint asked (Retry-After)")
	state.HoldUntil = record.At(time.Now().Add(-time.Minute))
	putState(t, s, state)
	if o := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK); strings.Contains(o.out, "Retry-After") {
		t.Errorf("that is over:\n%s", o.out)
	}
}

// What the configuration has ordered outlasts a resume: it is not done then.
func TestResumeOfWhatTheConfigurationPauses(t *testing.T) {
	for reason, next := range map[record.PauseReason]string{record.PauseDisabled: "webhooks update crm --enabled=true", record.PauseConfig: "mend its configuration"} {
		s := newWebhookShell(t)
		putState(t, s, record.State{Webhook: "crm", Status: record.Paused, PauseReasons: []record.PauseReason{reason}, LastError: record.ConfigError + "timeout is -5s"})
		answerCommands(t, s, map[record.Action]record.Result{record.ActionResume: {Result: record.ResultDone, Detail: "still paused"}})
		s.run(t, "webhooks", "resume", "crm").wantCode(t, exitFailed).wantOut(t, "resume of crm: still paused").wantErr(t, "crm is paused ("+string(reason)+")", next)
		if o := s.run(t, "webhooks", "resume", "crm", "--follow", "-o", "json").wantCode(t, exitFailed).object(t); o["result"] != "done" {
			t.Errorf("got %v", o)
		}
		get := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK)
		if reason == record.PauseConfig {
			get.wantOut(t, "its configuration can't be used: timeout is -5s")
		}
		if strings.Contains(get.out, "Last answer") {
			t.Errorf("no endpoint has answered so:\n%s", get.out)
		}
	}
}
