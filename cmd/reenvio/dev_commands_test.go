package main

import (
	"fmt"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

// What a person does in the second terminal is done by a dispatcher.
func TestCommandsAgainstDev(t *testing.T) {
	s := newShell(t)
	d := startDev(t, s)
	d.await(t, d.ended, demoOK, "delivered", "attempt 1")
	d.await(t, d.ended, demoDown, "failed", "attempt 1")
	s.run(t, "webhooks", "test", demoOK).wantCode(t, exitOK).wantOut(t, "test of demo-ok done: status 200")
	s.run(t, "webhooks", "test", demoDown).wantCode(t, exitFailed).wantOut(t, "failed: status 500")

	send := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			s.run(t, "send", "--webhook", demoOK, "--id", id, "--data", "{}").wantCode(t, exitOK)
		}
	}
	view := func() webhookView {
		t.Helper()
		return parse[webhookView](t, s.run(t, "webhooks", "get", demoOK, "-o", "json").wantCode(t, exitOK))
	}

	// Disabled by its configuration, and back, without a restart.
	s.run(t, "webhooks", "update", demoOK, "--enabled=false").wantCode(t, exitOK).wantOut(t, "enabled")
	d.await(t, d.ended, demoOK, "paused", "disabled")
	send("off-1", "off-2", "off-3")
	d.await(t, d.ended, demoOK, "parked", "off-3")
	s.run(t, "webhooks", "get", demoOK).wantCode(t, exitOK).wantOut(t, "3, the oldest since", "--enabled=true")

	// One of them is skipped, from where it lies, and one by the place of its event.
	first := fmt.Sprintf("webhooks.parked/%d/%d", numberOf(t, demoOK), view().State.Parked.From)
	s.run(t, "skip", first, "--to-dlq", "--yes").wantCode(t, exitOK).wantOut(t, "off-1", "done")
	s.run(t, "skip", first, "--to-dlq", "--yes").wantCode(t, exitFailed).wantOut(t, "off-1", "refused")
	s.run(t, "webhooks", "discard-parked", demoOK, "--before", "1h", "--dry-run").wantCode(t, exitOK).wantOut(t, "0 of 2")
	s.run(t, "webhooks", "discard-parked", demoOK, "--before", "0s", "--dry-run").wantCode(t, exitOK).wantOut(t, "Would discard 2 of 2")
	s.run(t, "webhooks", "discard-parked", demoOK, "--before", "0s", "--yes").wantCode(t, exitOK).wantOut(t, "discarded: 2")
	if got := view().State.Parked; got != nil {
		t.Errorf("parked: %+v", got)
	}
	s.run(t, "webhooks", "update", demoOK, "--unset", "enabled").wantCode(t, exitOK)
	send("on-1")
	d.await(t, d.ended, demoOK, "delivered", "on-1")

	// Held by hand, in each way.
	for _, flags := range [][]string{{"--webhook", demoOK}, {"--host", "127.0.0.1"}, {"--all"}} {
		s.run(t, append([]string{"hold"}, flags...)...).wantCode(t, exitOK)
		if v := view(); v.statusText() != "active, held" {
			t.Errorf("%v: %s", flags, v.statusText())
		}
		s.run(t, "webhooks", "test", demoOK).wantCode(t, exitFailed).wantOut(t, "refused", "held")
		send("held" + flags[0])
		s.run(t, append([]string{"release"}, flags...)...).wantCode(t, exitOK)
		d.await(t, d.ended, demoOK, "delivered", "held"+flags[0])
	}
	if v := view(); v.held() {
		t.Errorf("still held: %+v", v)
	}

	s.run(t, "webhooks", "rotate-secret", demoOK).wantCode(t, exitOK)
	s.run(t, "webhooks", "test", demoOK).wantCode(t, exitOK)
	s.run(t, "webhooks", "pause", demoOK).wantCode(t, exitOK)
	send("parked-1")
	d.await(t, d.ended, demoOK, "parked", "parked-1")
	s.run(t, "webhooks", "resume", demoOK, "--follow").wantCode(t, exitOK).wantErr(t, "No event of demo-ok is parked any more")

	// Deleted, with an event that is parked.
	s.run(t, "webhooks", "pause", demoOK).wantCode(t, exitOK)
	send("parked-2")
	d.await(t, d.ended, demoOK, "parked", "parked-2")
	s.run(t, "webhooks", "delete", demoOK, "--yes").wantCode(t, exitOK).wantOut(t, "1 of them parked")
	d.await(t, d.ended, demoOK, "dead", "parked-2", string(record.WebhookDeleted))
	s.run(t, "webhooks", "test", demoOK).wantCode(t, exitFailed).wantErr(t, "was deleted")
	d.end(t)
}
