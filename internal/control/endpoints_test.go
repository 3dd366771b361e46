package control_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/control"
)

func TestEndpointLife(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx := w.process(t), t.Context()

		if _, etag, err := c.GetEndpoint(ctx, "crm"); !errors.Is(err, control.ErrNotFound) || etag != control.Absent {
			t.Errorf("before: got %d, %v", etag, err)
		}
		if _, err := c.WriteEndpoint(ctx, endpoint("crm"), 7); !errors.Is(err, control.ErrConflict) {
			t.Errorf("changing what isn't there: got %v", err)
		}
		created, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent); !errors.Is(err, control.ErrConflict) {
			t.Errorf("creating it twice: got %v", err)
		}

		stored, etag, err := c.GetEndpoint(ctx, "crm")
		if err != nil || etag != created {
			t.Fatalf("got etag %d, %v, want %d", etag, err, created)
		}
		if strings.Contains(string(stored.Marshal()), "topsecret") {
			t.Errorf("in clear: %s", stored.Marshal())
		}
		if stored.URLHost != "hooks.example.com:8443" || stored.CreatedAt.IsZero() || stored.UpdatedAt.IsZero() || stored.Secrets[0].CreatedAt.IsZero() {
			t.Errorf("not filled in: %s", stored.Marshal())
		}
		if opened, err := w.keys.OpenEndpoint(stored); err != nil || opened.URL != endpoint("").URL {
			t.Errorf("got %v, %v", opened, err)
		}

		// A change of what was read, its values still sealed.
		time.Sleep(time.Hour)
		change := stored.Clone()
		change.Description = "changed"
		changed, err := c.WriteEndpoint(ctx, change, etag)
		if err != nil || changed <= created {
			t.Fatalf("got etag %d, %v, want more than %d", changed, err, created)
		}
		after, _, err := c.GetEndpoint(ctx, "crm")
		if err != nil || after.Description != "changed" || after.URL != stored.URL || after.URLHost != stored.URLHost {
			t.Errorf("got %s, %v", after.Marshal(), err)
		}
		if !after.CreatedAt.Equal(stored.CreatedAt.Time) || after.UpdatedAt.Sub(stored.UpdatedAt.Time) < time.Hour {
			t.Errorf("created %v then %v, updated %v then %v", stored.CreatedAt, after.CreatedAt, stored.UpdatedAt, after.UpdatedAt)
		}

		if err := c.DeleteEndpoint(ctx, "crm", created); !errors.Is(err, control.ErrConflict) {
			t.Errorf("deleting with an old ETag: got %v", err)
		}
		if err := c.DeleteEndpoint(ctx, "crm", changed); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.GetEndpoint(ctx, "crm"); !errors.Is(err, control.ErrDeleted) {
			t.Errorf("after: got %v", err)
		}
		if _, err := c.WriteEndpoint(ctx, change, changed); !errors.Is(err, control.ErrConflict) {
			t.Errorf("changing what was deleted: got %v", err)
		}
		if _, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent); err != nil {
			t.Errorf("creating it anew: got %v", err)
		}
	})
}

func TestWriteEndpointRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx := w.process(t), t.Context()
		if _, err := c.WriteEndpoint(ctx, endpoint("no such/id"), control.Absent); err == nil || !strings.Contains(err.Error(), "webhook id") {
			t.Errorf("got %v", err)
		}
		// What was sealed for one webhook can't be given to another.
		other := endpoint("other")
		if err := w.keys.SealEndpoint(&other); err != nil {
			t.Fatal(err)
		}
		other.ID = "crm"
		if _, err := c.WriteEndpoint(ctx, other, control.Absent); err == nil || !strings.Contains(err.Error(), "url of webhook crm") {
			t.Errorf("got %v", err)
		}
		reader := control.New(nil, nil, w.topo, nil)
		if _, err := reader.WriteEndpoint(ctx, endpoint("crm"), control.Absent); err == nil || !strings.Contains(err.Error(), "secrets.keyset_file") {
			t.Errorf("without a keyset: got %v", err)
		}
		// The caller's copy is not changed under its hands.
		e := endpoint("crm")
		if _, err := c.WriteEndpoint(ctx, e, control.Absent); err != nil {
			t.Fatal(err)
		}
		if !e.Secrets[0].CreatedAt.IsZero() || e.Secrets[0].Value != "whsec_topsecret" || e.Headers["Authorization"] != "Bearer topsecret" {
			t.Errorf("the caller's copy was changed: %s", e.Marshal())
		}
	})
}

func TestListEndpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx := w.process(t), t.Context()
		if list, err := c.ListEndpoints(ctx); err != nil || len(list) != 0 {
			t.Errorf("before: got %v, %v", list, err)
		}
		etags := map[string]int64{}
		for i := range 10 {
			id := fmt.Sprintf("w%d", i)
			etag, err := c.WriteEndpoint(ctx, endpoint(id), control.Absent)
			if err != nil {
				t.Fatal(err)
			}
			etags[id] = etag
		}
		if err := c.DeleteEndpoint(ctx, "w3", etags["w3"]); err != nil {
			t.Fatal(err)
		}
		w.put(t, w.topo.Endpoints(), "w5", []byte("{ not JSON"))

		list, err := c.ListEndpoints(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range list {
			ids = append(ids, s.ID)
			switch {
			case s.ID == "w5":
				if s.Problem == nil || !strings.Contains(s.Problem.Error(), "w5") || s.ETag <= etags["w5"] {
					t.Errorf("the unreadable one: got %+v", s)
				}
			case s.Problem != nil || s.ETag != etags[s.ID] || s.URLHost == "":
				t.Errorf("got %+v, want etag %d", s, etags[s.ID])
			}
		}
		if got := strings.Join(ids, " "); got != "w0 w1 w2 w4 w5 w6 w7 w8 w9" {
			t.Errorf("got %s", got)
		}

		// An unreadable record is mended by writing over it.
		_, etag, err := c.GetEndpoint(ctx, "w5")
		if err == nil {
			t.Error("the unreadable one was read")
		}
		if _, err := c.WriteEndpoint(ctx, endpoint("w5"), etag); err != nil {
			t.Errorf("writing over it: %v", err)
		}
	})
}

// Thousands of webhooks are read in a few fetches, not one by one.
func TestListManyEndpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const n = 5000
		w.putMany(t, n)
		before := time.Now()
		list, err := w.process(t).ListEndpoints(t.Context())
		if err != nil || len(list) != n {
			t.Fatalf("got %d, %v, want %d", len(list), err, n)
		}
		// The bubble's clock moves only when somebody waits: reading never does.
		if waited := time.Since(before); waited > 0 {
			t.Errorf("waited %s", waited)
		}
	})
}
