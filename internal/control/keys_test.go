package control_test

import (
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

// A keyset that none of the other webhooks was written with is refused; the first webhook has nothing to compare with.
func TestCheckKeyset(t *testing.T) {
	other := keyset(t)
	bubble(t, func(t *testing.T, w *world) {
		ours, theirs, ctx := w.process(t), control.New(w.Client(t), w.options(t), w.topo, other), t.Context()
		check := func(c *control.Control, id string, ok bool) {
			t.Helper()
			err := c.CheckKeyset(ctx, id)
			if ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "use the keyset that the dispatchers have") {
				t.Errorf("%s: %v", id, err)
			}
		}
		check(theirs, "a", true)
		if _, err := ours.WriteEndpoint(ctx, endpoint("a"), control.Absent); err != nil {
			t.Fatal(err)
		}
		check(ours, "b", true)
		check(theirs, "a", true) // it would be the only one
		check(theirs, "b", false)
		// One that both can read: the key is in the keyset of both.
		etag, err := theirs.WriteEndpoint(ctx, endpoint("b"), control.Absent)
		if err != nil {
			t.Fatal(err)
		}
		check(theirs, "c", true)
		check(theirs, "b", false)
		if err := ours.DeleteEndpoint(ctx, "b", etag); err != nil {
			t.Fatal(err)
		}
		check(theirs, "c", false)
	})
}

func TestAChangeWithAnotherKeyset(t *testing.T) {
	other := keyset(t)
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if _, err := w.process(t).WriteEndpoint(ctx, endpoint("crm"), control.Absent); err != nil {
			t.Fatal(err)
		}
		_, _, err := control.New(w.Client(t), w.options(t), w.topo, other).ChangeEndpoint(ctx, "crm", func(*record.Endpoint) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "this process has another keyset than the one that wrote the webhook: give it that one") || !strings.Contains(err.Error(), "only if that keyset is lost") {
			t.Errorf("got %v", err)
		}
	})
}
