package main

import (
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// newWebhookShell has topics and the webhook crm.
func newWebhookShell(t *testing.T, args ...string) *shell {
	t.Helper()
	s := newClusterShell(t)
	s.run(t, "topics", "apply", "--yes").wantCode(t, exitOK)
	s.run(t, append([]string{"webhooks", "create", "--id", "crm", "--url", hook}, args...)...).wantCode(t, exitOK)
	return s
}

// reveal is the configuration of crm with its values in clear.
func (s *shell) reveal(t *testing.T) record.Endpoint {
	t.Helper()
	view := parse[webhookView](t, s.run(t, "webhooks", "get", "crm", "--reveal", "-o", "json").wantCode(t, exitOK))
	return view.Endpoint
}

func TestUpdateChangesWhatIsGiven(t *testing.T) {
	s := newWebhookShell(t, "--timeout", "10s", "--header", "Authorization: Bearer s3cret-token", "--header", "X-Old: 1", "--schedule", "1s,5s", "--tenant", "acme")
	before := s.reveal(t)

	updated := s.run(t, "webhooks", "update", "crm", "--url", "https://new.example.com/s3cret-path", "--header", "authorization: Bearer s3cret-2", "--header", "X-Old:", "--header", "X-New: 1",
		"--unset", "timeout,schedule", "--max-attempts", "7", "--enabled=false").wantCode(t, exitOK).
		wantOut(t, "CHANGED", "url", "https://crm.example.com/(redacted)", "https://new.example.com/(redacted)", "timeout", "10s", "30s (default)", "max_attempts", "5 (default)", "headers.X-Old", "headers.X-New", "schedule", "1s, 5s", "enabled")
	if strings.Contains(updated.out+updated.errOut, "s3cret") || strings.Contains(updated.out, "tenant") {
		t.Errorf("it shows a secret, or what has not changed:\n%s", updated.out)
	}
	e := s.reveal(t)
	want := map[string]string{"authorization": "Bearer s3cret-2", "X-New": "1"}
	if e.URL != "https://new.example.com/s3cret-path" || e.URLHost != "new.example.com" || fmt.Sprint(e.Headers) != fmt.Sprint(want) {
		t.Errorf("got %s", e.Marshal())
	}
	if e.TimeoutOr() != record.DefaultTimeout || e.Schedule != nil || e.MaxAttempts != 7 || e.IsEnabled() || e.Tenant != "acme" || e.Secrets[0].Value != before.Secrets[0].Value || !e.CreatedAt.Equal(before.CreatedAt.Time) {
		t.Errorf("got %s", e.Marshal())
	}

	// What is given is what it is already.
	s.run(t, "webhooks", "update", "crm", "--max-attempts", "7").wantCode(t, exitOK).wantOut(t, "Nothing has changed")
	view := s.run(t, "webhooks", "update", "crm", "--max-attempts", "7", "-o", "json").wantCode(t, exitOK).object(t)
	if changes := view["changed"].([]any); len(changes) != 0 {
		t.Errorf("changed: %v", changes)
	}
	view = s.run(t, "webhooks", "update", "crm", "--unset", "max-attempts,header", "--header", "X-Only: 1", "-o", "json").wantCode(t, exitOK).object(t)
	if got := fmt.Sprint(view["changed"]); got != "[map[field:headers.X-New from:(redacted)] map[field:headers.X-Only to:(redacted)] map[field:headers.authorization from:(redacted)] map[field:max_attempts from:7 to:5]]" {
		t.Errorf("changed: %s", got)
	}
	if e := view["endpoint"].(map[string]any); e["max_attempts"] != 5.0 || e["id"] != "crm" {
		t.Errorf("endpoint: %v", e)
	}

	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	s.stdin = secret
	s.run(t, "webhooks", "update", "crm", "--secret", "-").wantCode(t, exitOK).wantOut(t, "secrets")
	if e := s.reveal(t); len(e.Secrets) != 1 || e.Secrets[0].Value != secret {
		t.Errorf("got %s", e.Marshal())
	}
}

func TestUpdateRefuses(t *testing.T) {
	s := newWebhookShell(t)
	before := s.reveal(t)
	s.run(t, "webhooks", "update", "nobody", "--timeout", "10s").wantCode(t, exitFailed).wantErr(t, "nobody", "reenvio webhooks list")
	s.run(t, "webhooks", "update", "crm", "--timeout", "10m").wantCode(t, exitUsage).wantErr(t, "timeout is 10m")
	s.run(t, "webhooks", "update", "crm", "--url", "http://crm.example.com/").wantCode(t, exitUsage).wantErr(t, "egress.allow_http")
	s.run(t, "webhooks", "update", "crm", "--timeout", "10s", "--secrets.keyset_file=").wantCode(t, exitUsage).wantErr(t, "secrets.keyset_file")
	s.run(t, "webhooks", "update", "crm", "--tls-ca", "x").wantCode(t, exitUsage).wantErr(t, "tls.ca holds no certificate")
	if after := s.reveal(t); string(after.Marshal()) != string(before.Marshal()) {
		t.Errorf("a refused change was made: %s", after.Marshal())
	}
	// Of a certificate only the size is shown.
	changes, err := differences(before, func() record.Endpoint {
		e := before.Clone()
		e.TLS = &record.TLS{CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), Key: "s3cret"}
		return e
	}())
	if got := fmt.Sprint(changes); err != nil || !strings.Contains(got, "bytes of PEM") || strings.Contains(got, "BEGIN") || strings.Contains(got, "s3cret") {
		t.Errorf("%s, %v", got, err)
	}
}

// Several people change different fields at the same moment: none is told of a conflict, and no change is lost.
func TestConcurrentUpdates(t *testing.T) {
	s := newWebhookShell(t)
	var wg sync.WaitGroup
	for _, change := range [][]string{{"--timeout", "10s"}, {"--max-attempts", "7"}, {"--tenant", "acme"}, {"--header", "X-A: 1"}, {"--header", "X-B: 1"}, {"--enabled=false"}} {
		wg.Go(func() {
			if o := s.runCtx(t.Context(), append([]string{"webhooks", "update", "crm"}, change...)...); o.code != exitOK {
				t.Errorf("%v: %d: %s", change, o.code, o.errOut)
			}
		})
	}
	wg.Go(func() {
		if o := s.runCtx(t.Context(), "webhooks", "rotate-secret", "crm"); o.code != exitOK {
			t.Errorf("rotate-secret: %d: %s", o.code, o.errOut)
		}
	})
	wg.Wait()
	e := s.reveal(t)
	if time.Duration(e.Timeout) != 10*time.Second || e.MaxAttempts != 7 || e.Tenant != "acme" || len(e.Headers) != 2 || e.IsEnabled() || len(e.Secrets) != 2 {
		t.Errorf("a change is lost: %s", e.Marshal())
	}
}

func TestRotateSecret(t *testing.T) {
	s := newWebhookShell(t)
	first := s.reveal(t).Secrets[0].Value
	began := time.Now()
	rotated := s.run(t, "webhooks", "rotate-secret", "crm").wantCode(t, exitOK).wantOut(t, "sign too, the last until", "Signing secret, shown this once: whsec_")
	secrets := s.reveal(t).Secrets
	if len(secrets) != 2 || !strings.Contains(rotated.out, secrets[0].Value) || secrets[1].Value != first || !secrets[0].ExpiresAt.IsZero() {
		t.Fatalf("got %d secrets", len(secrets))
	}
	if left := secrets[1].ExpiresAt.Sub(began); left < 24*time.Hour-time.Second || left > 24*time.Hour+time.Minute {
		t.Errorf("the old one signs for %s", left)
	}

	// The earlier end stays; one that was given is not shown.
	const given = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	view := s.run(t, "webhooks", "rotate-secret", "crm", "--secret", given, "--overlap", "2d", "-o", "json").wantCode(t, exitOK)
	if object := view.object(t); object["secret"] != nil || strings.Contains(view.out, "whsec_") {
		t.Errorf("got %s", view.out)
	}
	if endpoint := parse[webhookView](t, view).Endpoint; endpoint.Ordering != record.OrderFirstAttempt || endpoint.MaxInFlight != 1 {
		t.Errorf("what is in force is left out: %s", view.out)
	}
	three := s.reveal(t).Secrets
	if len(three) != 3 || three[0].Value != given || !three[2].ExpiresAt.Equal(secrets[1].ExpiresAt.Time) || !three[1].ExpiresAt.After(three[2].ExpiresAt.Time) {
		t.Errorf("got %d secrets: %v", len(three), three)
	}

	s.run(t, "webhooks", "rotate-secret", "crm", "--secret", given, "--overlap", "0").wantCode(t, exitUsage).wantErr(t, "--secret is what crm signs with now already")
	if same := s.reveal(t).Secrets; len(same) != 3 {
		t.Errorf("a rotation that was refused leaves %d secrets", len(same))
	}
	s.run(t, "webhooks", "rotate-secret", "crm", "--overlap", "0").wantCode(t, exitOK).wantOut(t, "The old ones have ended", "whsec_")
	if last := s.reveal(t).Secrets; len(last) != 1 || last[0].Value == given {
		t.Errorf("got %d secrets", len(last))
	}
	s.run(t, "webhooks", "rotate-secret", "nobody").wantCode(t, exitFailed).wantErr(t, "nobody", "reenvio webhooks list")
}

func TestDelete(t *testing.T) {
	s := newWebhookShell(t)
	putState(t, s, record.State{Webhook: "crm", PauseReasons: []record.PauseReason{record.PauseManual}, Parked: &record.Parked{Count: 12}})
	s.run(t, "webhooks", "delete", "crm").wantCode(t, exitUsage).wantErr(t, "Delete crm?", "12 of them parked", "webhook_deleted", "--yes")
	s.terminal, s.stdin = true, "n\n"
	s.run(t, "webhooks", "delete", "crm").wantCode(t, exitFailed).wantErr(t, "[y/N]", "Nothing was done")
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK)
	s.terminal, s.stdin = false, ""
	gone := s.run(t, "webhooks", "delete", "crm", "--yes", "-o", "json").wantCode(t, exitOK).object(t)
	if gone["webhook"] != "crm" || gone["result"] != "done" || gone["parked"] != 12.0 {
		t.Errorf("got %v", gone)
	}
	s.run(t, "webhooks", "get", "crm").wantCode(t, exitFailed).wantErr(t, "was deleted", "crm")
	s.run(t, "webhooks", "delete", "crm", "--yes").wantCode(t, exitFailed).wantErr(t, "was deleted", "reenvio webhooks list")
	s.run(t, "webhooks", "update", "crm", "--tenant", "x").wantCode(t, exitFailed).wantErr(t, "was deleted")

	// One that can't be read can be deleted.
	put(t, s, "webhooks.endpoints", "crm", []byte("{"))
	s.run(t, "webhooks", "delete", "crm", "--yes").wantCode(t, exitOK).wantOut(t, "Deleted crm", "dlq list --webhook crm")
}
