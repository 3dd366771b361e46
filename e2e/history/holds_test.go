package history_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// heldAfter adds a hold of webhook w, as its owner writes it, just after e2's first
// attempt has failed, and returns when.
func heldAfter(t *testing.T, h *history.History, scope record.HoldScope, value string) time.Time {
	t.Helper()
	rules := h.Rules["w"]
	rules.Tenant, rules.Host = "acme", "crm.example"
	h.Rules["w"] = rules
	s := of(t, h.Topics.States, func(s history.State) bool { return s.Webhook == "w" && s.Streak == 1 })
	if scope == record.HoldWebhook {
		s.Held = true
		return s.Written
	}
	h.Topics.Numbers = append(h.Topics.Numbers, history.Number{
		Place: record.Source{Topic: "state", Offset: 10_000}, Written: s.Written, Holds: []record.Hold{{Scope: scope, Value: value}},
	})
	return s.Written
}

// act adds a command and its result, a millisecond apart.
func act(h *history.History, key string, at time.Time, a history.Act) {
	a.Webhook, a.ID, a.Written = key, "by hand", at
	h.Topics.Acts = append(h.Topics.Acts, a, history.Act{
		Webhook: key, ID: a.ID, Result: record.ResultDone, Place: a.Place, Written: at.Add(time.Millisecond),
	})
}

// A hold is obeyed until it is released: by its own command, not by another's.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		name         string
		scope        record.HoldScope
		value        string
		releaseScope record.HoldScope // empty: none
		releaseValue string
		broken       bool
	}{
		{"the webhook", record.HoldWebhook, "w", "", "", true},
		{"the webhook, released", record.HoldWebhook, "w", record.HoldWebhook, "w", false},
		{"its tenant", record.HoldTenant, "acme", "", "", true},
		{"its host", record.HoldHost, "crm.example", "", "", true},
		{"all", record.HoldAll, "", "", "", true},
		{"another tenant", record.HoldTenant, "zeta", "", "", false},
		{"its tenant, released", record.HoldTenant, "acme", record.HoldTenant, "acme", false},
		{"its tenant, and another is released", record.HoldTenant, "acme", record.HoldTenant, "zeta", true},
		{"all, and its tenant is released", record.HoldAll, "", record.HoldTenant, "acme", true},
		{"all, released", record.HoldAll, "", record.HoldAll, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := handmade()
			at := heldAfter(t, &h, c.scope, c.value)
			if c.releaseScope != "" {
				key := record.NumberKey
				if c.releaseScope == record.HoldWebhook {
					key = "w"
				}
				act(&h, key, at, history.Act{Action: record.ActionRelease, Scope: c.releaseScope, Value: c.releaseValue})
			}
			violations := history.Check(h).Violations
			if held := slices.ContainsFunc(violations, func(v history.Violation) bool {
				return v.Promise == history.Pauses && strings.Contains(v.Text, "held")
			}); held != c.broken || !c.broken && len(violations) > 0 {
				t.Errorf("got %v", violations)
			}
		})
	}
}

// What dies by hand or by its time has a reason in the topics.
func TestDeathsByHand(t *testing.T) {
	dead := func(t *testing.T, h *history.History) *history.Dead {
		return of(t, h.Topics.Dead, func(d history.Dead) bool { return d.ID == "e3" })
	}
	event := func(t *testing.T, h *history.History) *history.Event {
		return of(t, h.Topics.Events, func(e history.Event) bool { return e.ID == "e3" })
	}
	for name, c := range map[string]struct {
		edit func(t *testing.T, h *history.History)
		says string
	}{
		"nobody asked": {func(t *testing.T, h *history.History) { dead(t, h).Reason = record.Discarded }, "nobody has asked"},
		"skipped": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Discarded
			act(h, record.NumberKey, dead(t, h).Written, history.Act{Action: record.ActionSkip, Value: event(t, h).Place.String()})
		}, ""},
		"another is skipped": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Discarded
			act(h, record.NumberKey, dead(t, h).Written, history.Act{Action: record.ActionSkip, Value: "events/0/77"})
		}, "nobody has asked"},
		"discarded": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Discarded
			act(h, "w", dead(t, h).Written, history.Act{Action: record.ActionDiscardParked})
		}, ""},
		"another's are discarded": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Discarded
			act(h, "p", dead(t, h).Written, history.Act{Action: record.ActionDiscardParked})
		}, "nobody has asked"},
		"expired": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Expired
			event(t, h).Expiry = dead(t, h).Written
		}, ""},
		"expired without a time": {func(t *testing.T, h *history.History) { dead(t, h).Reason = record.Expired }, "died as expired"},
		"expired too early": {func(t *testing.T, h *history.History) {
			dead(t, h).Reason = record.Expired
			event(t, h).Expiry = dead(t, h).Written.Add(time.Hour)
		}, "died as expired"},
		"tried after its time": {func(t *testing.T, h *history.History) {
			event(t, h).Expiry = attempt(t, h, "e3", 2).Started.Add(-time.Second)
		}, "after its ce_expirytime"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handmade()
			c.edit(t, &h)
			violations := history.Check(h).Violations
			found := slices.ContainsFunc(violations, func(v history.Violation) bool { return strings.Contains(v.Text, c.says) })
			if (c.says == "") != (len(violations) == 0) || c.says != "" && !found {
				t.Errorf("got %v", violations)
			}
		})
	}
}

// The request of a test belongs to its command, and to no event.
func TestTestRequests(t *testing.T) {
	for name, place := range map[string]int64{"asked for": 7, "not asked for": 8} {
		h := handmade()
		at := h.Requests[len(h.Requests)-1].End.Add(time.Second)
		act(&h, "w", at, history.Act{Action: record.ActionTest, Place: record.Source{Topic: "commands", Offset: place}})
		h.Requests = append(h.Requests, history.Request{Webhook: "w", ID: "test_0_7", Attempt: 1, Start: at, End: at, Status: 500})
		if violations := history.Check(h).Violations; (len(violations) == 0) != (place == 7) {
			t.Errorf("%s: %v", name, violations)
		}
	}
}
