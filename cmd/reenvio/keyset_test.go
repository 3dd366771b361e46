package main

import (
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

// A keyset that isn't the right one writes nothing, and says which one to use.
func TestAnotherKeyset(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "secrets", "keygen", "-f", "other.json").wantCode(t, exitOK)
	const other = "--secrets.keyset_file=other.json"

	s.run(t, "webhooks", "create", "--id", "second", "--url", hook, other).wantCode(t, exitFailed).wantErr(t, "second is not written", "use the keyset that the dispatchers have")
	s.run(t, "webhooks", "get", "second").wantCode(t, exitFailed)
	s.run(t, "webhooks", "create", "--id", "second", "--url", hook).wantCode(t, exitOK)

	for _, change := range [][]string{{"update", "crm", "--timeout", "5s"}, {"rotate-secret", "crm"}} {
		s.run(t, append(append([]string{"webhooks"}, change...), other)...).wantCode(t, exitFailed).
			wantErr(t, "this process has another keyset than the one that wrote the webhook: give it that one", "only if that keyset is lost: reenvio webhooks delete crm")
		o := s.run(t, append(append([]string{"webhooks"}, change...), "--secrets.keyset_file=")...).wantCode(t, exitUsage).wantErr(t, "use the keyset that the dispatchers have")
		if strings.Contains(o.errOut, "keygen") {
			t.Errorf("a new keyset would not open what is there:\n%s", o.errOut)
		}
	}

	putState(t, s, record.State{
		Webhook: "crm", Status: record.Paused, PauseReasons: []record.PauseReason{record.PauseConfig},
		LastError: record.ConfigError + "decrypting url of webhook crm: the encrypted value does not open: its key 7 is not in the keyset (secrets.keyset_file, secrets.keyset)",
	})
	get := s.run(t, "webhooks", "get", "crm").wantCode(t, exitOK).wantOut(t, "the dispatcher has another keyset than the one that wrote the webhook: give it that one", "only if that keyset is lost")
	if strings.Contains(get.out, "webhooks update crm") {
		t.Errorf("an update mends nothing:\n%s", get.out)
	}
	s.run(t, "status").wantCode(t, exitOK).wantOut(t, "A dispatcher's keyset lacks the key that wrote 1 webhook", "give it that one")
}

// rotation and update refuse as create does when the webhook itself was written with the keyset that nobody else has.
func TestAChangeWithAKeysetOfItsOwn(t *testing.T) {
	s := newWebhookShell(t)
	s.run(t, "secrets", "keygen", "-f", "other.json").wantCode(t, exitOK)
	s.run(t, "webhooks", "delete", "crm", "--yes").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "odd", "--url", hook, "--secrets.keyset_file=other.json").wantCode(t, exitOK) // nothing to compare with
	s.run(t, "webhooks", "update", "odd", "--timeout", "5s", "--secrets.keyset_file=other.json").wantCode(t, exitOK)
	s.run(t, "webhooks", "create", "--id", "even", "--url", hook).wantCode(t, exitFailed).wantErr(t, "the other webhooks (1)")
}

// What another writer has left in clear is encrypted by whoever may read it so; what nobody can read has one way out.
func TestWhatOtherWritersLeave(t *testing.T) {
	s := newWebhookShell(t)
	put(t, s, "webhooks.endpoints", "clear", []byte(`{"id":"clear","url":"https://crm.example.com/x","secrets":[{"value":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]}`))
	update := []string{"webhooks", "update", "clear", "--timeout", "5s"}
	s.run(t, update...).wantCode(t, exitFailed).wantErr(t, "the value is not encrypted", "make this change with --secrets.require_encrypted=false")
	s.run(t, append(update, "--secrets.require_encrypted=false")...).wantCode(t, exitOK)
	s.run(t, "webhooks", "get", "clear", "--reveal").wantCode(t, exitOK).wantOut(t, "https://crm.example.com/x", "5s")

	put(t, s, "webhooks.endpoints", "odd", []byte("{ not JSON"))
	s.run(t, "webhooks", "get", "odd").wantCode(t, exitFailed).wantErr(t, "its writer has to write it anew, or delete it (`reenvio webhooks delete odd`)")
	s.run(t, "webhooks", "delete", "odd", "--yes").wantCode(t, exitOK)
}
