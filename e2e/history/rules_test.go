package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// TestChanges: what a configuration asks for binds from when it was learned until
// another may have been.
func TestChanges(t *testing.T) {
	h := handmade()
	there := of(t, h.Topics.Events, func(e history.Event) bool { return e.ID == "e2" }).Written
	over := request(t, &h, "e3", 1).Start // while e2 waits for its second attempt
	const strict, first = record.OrderStrict, record.OrderFirstAttempt
	change := func(at time.Time, o record.Ordering) history.Change {
		return history.Change{Written: at, Seen: at, MaxAttempts: 3, Ordering: o}
	}
	gone := func(at time.Time) history.Change {
		return history.Change{Written: at, Seen: at, Deleted: true, MaxAttempts: 3}
	}
	for _, c := range []struct {
		name    string
		from    record.Ordering
		changes []history.Change
		broken  history.Promise // empty: none
	}{
		{"strict", strict, nil, history.Strict},
		{"strict since long before", first, []history.Change{change(there.Add(-time.Hour), strict)}, history.Strict},
		{"strict, but not yet learned", first, []history.Change{change(there.Add(-time.Second), strict)}, ""},
		{"strict since the event is there", first, []history.Change{change(there.Add(time.Millisecond), strict)}, ""},
		{"strict until then", strict, []history.Change{change(over.Add(-time.Millisecond), first)}, ""},
		{"strict until it was over", strict, []history.Change{change(over.Add(time.Millisecond), first)}, history.Strict},
		{"strict all the time but for a moment", strict, []history.Change{change(there.Add(time.Millisecond), first), change(there.Add(2*time.Millisecond), strict)}, ""},
		{"deleted before", strict, []history.Change{gone(there.Add(-time.Hour))}, ""},
		{"made again before", first, []history.Change{gone(there.Add(-time.Hour)), change(there.Add(-time.Minute), strict)}, history.Strict},
	} {
		h := handmade()
		h.Rules["w"] = history.Rules{MaxAttempts: 3, Ordering: c.from, Changes: c.changes}
		violations := history.Check(h).Violations
		if found := slices.ContainsFunc(violations, func(v history.Violation) bool { return v.Promise == c.broken }); found != (c.broken != "") || c.broken == "" && len(violations) > 0 {
			t.Errorf("%s: %v", c.name, violations)
		}
	}
}

// TestChangedAttempts: an event dies when the configuration of its last attempt says so.
func TestChangedAttempts(t *testing.T) {
	h := handmade()
	first, last := attempt(t, &h, "e3", 1).Started, attempt(t, &h, "e3", 3).Started
	to := func(at time.Time, n int) history.Change { return history.Change{Written: at, Seen: at, MaxAttempts: n} }
	for _, c := range []struct {
		name    string
		from    int
		changes []history.Change
		fine    bool
	}{
		{"lowered before the last", 5, []history.Change{to(last.Add(-time.Millisecond), 3)}, true},
		{"lowered further before the last", 5, []history.Change{to(last.Add(-time.Millisecond), 2)}, true},
		{"lowered after the last", 5, []history.Change{to(last.Add(time.Minute), 3)}, false},
		{"lowered long before", 5, []history.Change{to(first.Add(-time.Hour), 2)}, false},
		{"raised long before", 3, []history.Change{to(first.Add(-time.Hour), 5)}, false},
		{"raised at the last", 3, []history.Change{to(last.Add(time.Millisecond), 5)}, true},
	} {
		h := handmade()
		h.Rules["w"] = history.Rules{MaxAttempts: c.from, Changes: c.changes}
		if err := history.Check(h).Err(); (err == nil) != c.fine {
			t.Errorf("%s: want fine %t, got %v", c.name, c.fine, err)
		}
	}
}

// TestChangedInFlight: as many requests at once as any configuration allows that may
// be gone by.
func TestChangedInFlight(t *testing.T) {
	h := handmade()
	over := request(t, &h, "e3", 1).Start
	for name, c := range map[string]struct {
		change history.Change
		fine   bool
	}{
		"raised long before":  {history.Change{Written: over.Add(-time.Minute), Seen: over.Add(-time.Minute), Ordering: record.OrderNone, MaxInFlight: 3}, true},
		"raised a bit":        {history.Change{Written: over.Add(-time.Minute), Seen: over.Add(-time.Minute), Ordering: record.OrderNone, MaxInFlight: 2}, false},
		"raised a moment ago": {history.Change{Written: over, Seen: over, Ordering: record.OrderNone, MaxInFlight: 3}, true},
		"raised afterwards":   {history.Change{Written: over.Add(time.Second), Seen: over.Add(time.Second), Ordering: record.OrderNone, MaxInFlight: 3}, false},
	} {
		h := handmade()
		c.change.MaxAttempts = 3
		h.Rules["w"] = history.Rules{MaxAttempts: 3, Ordering: record.OrderNone, MaxInFlight: 2, Changes: []history.Change{c.change}}
		for _, id := range []string{"e1", "e2"} { // their answers are written after e3's request
			request(t, &h, id, 1).End = over.Add(time.Millisecond)
		}
		broken := slices.ContainsFunc(history.Check(h).Violations, func(v history.Violation) bool { return v.Promise == history.Policy })
		if broken == c.fine {
			t.Errorf("%s: want fine %t, got %v", name, c.fine, history.Check(h).Err())
		}
	}
}

// TestMadeAgain: nobody can tell what counts of the streak of a webhook that was deleted
// and made again.
func TestMadeAgain(t *testing.T) {
	h := handmade()
	h.Topics.States = slices.DeleteFunc(h.Topics.States, func(s history.State) bool { return s.Webhook == "p" && len(s.Reasons) > 0 })
	at := attempt(t, &h, "p2", 1).Started
	rules := h.Rules["p"]
	rules.Changes = []history.Change{{Written: at, Seen: at, Deleted: true}, {Written: at, Seen: at}}
	h.Rules["p"] = rules
	if err := history.Check(h).Err(); err != nil {
		t.Error(err)
	}
	rules.Changes = rules.Changes[:1]
	h.Rules["p"] = rules
	if history.Check(h).Err() == nil {
		t.Error("a pause that is nowhere written passed")
	}
}
