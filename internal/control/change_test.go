package control_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

// Writers of several processes change different fields of one webhook at once: all changes are in the record at the end, and the keyset opens it.
func TestConcurrentChangesAreAllKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if _, err := w.process(t).WriteEndpoint(ctx, endpoint("crm"), control.Absent); err != nil {
			t.Fatal(err)
		}
		changes := []func(e *record.Endpoint){
			func(e *record.Endpoint) { e.Timeout = record.Duration(10 * time.Second) },
			func(e *record.Endpoint) { e.MaxAttempts = 7 },
			func(e *record.Endpoint) { e.Tenant = "acme" },
			func(e *record.Endpoint) { e.URL = "https://new.example/topsecret" },
			func(e *record.Endpoint) { e.Description = "changed" },
			func(e *record.Endpoint) { off := false; e.Enabled = &off },
		}
		for i := range 3 { // also within one field
			changes = append(changes, func(e *record.Endpoint) { e.Headers[fmt.Sprintf("X-%d", i)] = "topsecret" })
		}
		var wg sync.WaitGroup
		for _, change := range changes {
			c := w.process(t)
			wg.Go(func() {
				if _, _, err := c.ChangeEndpoint(ctx, "crm", func(e *record.Endpoint) error { change(e); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		stored, _, err := w.process(t).GetEndpoint(ctx, "crm")
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.keys.OpenEndpoint(stored)
		if err != nil {
			t.Fatal(err)
		}
		if got.Timeout != record.Duration(10*time.Second) || got.MaxAttempts != 7 || got.Tenant != "acme" || got.URL != "https://new.example/topsecret" ||
			got.URLHost != "new.example" || got.Description != "changed" || got.IsEnabled() || len(got.Headers) != 4 {
			t.Errorf("a change is lost: %s", got.Marshal())
		}
	})
}

func TestChangeEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx := w.process(t), t.Context()
		none := func(*record.Endpoint) error { return nil }
		if _, _, err := c.ChangeEndpoint(ctx, "crm", none); !errors.Is(err, control.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
		etag, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if err != nil {
			t.Fatal(err)
		}
		// Nothing changed is nothing written, and a refused change neither.
		if _, _, err := c.ChangeEndpoint(ctx, "crm", none); err != nil {
			t.Error(err)
		}
		refused := errors.New("refused")
		if _, _, err := c.ChangeEndpoint(ctx, "crm", func(e *record.Endpoint) error { e.Tenant = "x"; return refused }); !errors.Is(err, refused) {
			t.Error(err)
		}
		if _, now, _ := c.GetEndpoint(ctx, "crm"); now != etag {
			t.Errorf("etag %d, want still %d", now, etag)
		}
		// In clear, before and after.
		before, after, err := c.ChangeEndpoint(ctx, "crm", func(e *record.Endpoint) error {
			if e.URL != endpoint("").URL || e.Headers["Authorization"] != "Bearer topsecret" {
				t.Errorf("not in clear: %s", e.Marshal())
			}
			e.Headers["Authorization"] = "Bearer other"
			return nil
		})
		if err != nil || before.Headers["Authorization"] != "Bearer topsecret" || after.Headers["Authorization"] != "Bearer other" {
			t.Errorf("%s, %s, %v", before.Marshal(), after.Marshal(), err)
		}
		if _, _, err := control.New(w.Client(t), w.options(t), w.topo, nil).ChangeEndpoint(ctx, "crm", none); err == nil {
			t.Error("without a keyset")
		}
	})
}

// Somebody who always writes first is not fought without end.
func TestChangeGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, other, ctx := w.process(t), w.process(t), t.Context()
		if _, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent); err != nil {
			t.Fatal(err)
		}
		n := 0
		_, _, err := c.ChangeEndpoint(ctx, "crm", func(e *record.Endpoint) error {
			n++
			theirs, etag, err := other.GetEndpoint(ctx, "crm")
			if err != nil {
				return err
			}
			theirs.Description = fmt.Sprint(n)
			if _, err := other.WriteEndpoint(ctx, theirs, etag); err != nil {
				return err
			}
			e.Tenant = "acme"
			return nil
		})
		if !errors.Is(err, control.ErrConflict) || n < 3 {
			t.Errorf("after %d tries: %v", n, err)
		}
	})
}
