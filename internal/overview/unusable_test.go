package overview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

// A configuration that can't be used is a problem each; a keyset that isn't the right one is one for all its webhooks.
func TestConfigurationsThatCannotBeUsed(t *testing.T) {
	inWorld(t, 2, func(t *testing.T, w *world) {
		pause := func(id, why string) {
			w.state(record.State{Webhook: id, Status: record.Paused, PauseReasons: []record.PauseReason{record.PauseConfig}, LastError: record.ConfigError + why})
		}
		pause("typo", "timeout is -5s")
		pause("old", "")
		const foreign = "decrypting url of webhook x: the encrypted value does not open: its key 7 is not in the keyset (secrets.keyset_file, secrets.keyset)"
		for i := range 7 {
			pause(fmt.Sprintf("k%d", i), foreign)
		}
		o := w.read()
		wantProblem(t, o, "webhook typo", "timeout is -5s", "reenvio webhooks update typo")
		wantProblem(t, o, "webhook old")
		wantProblem(t, o, "7 webhooks", "k0, k1, k2, k3, k4 and 2 more", "another keyset than the one that wrote the webhook: give it that one", "only if that keyset is lost: reenvio webhooks delete WEBHOOK")
		count := 0
		for _, p := range o.Problems {
			if strings.Contains(p.Problem, "keyset") {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d problems are about the keyset: %+v", count, o.Problems)
		}
		for _, p := range o.Paused {
			if p.LastError == record.ConfigError+foreign && !strings.Contains(p.NextStep, "reenvio webhooks delete "+p.Webhook) {
				t.Errorf("%s: %s", p.Webhook, p.NextStep)
			}
		}
		valid(t, o)
	})
}
