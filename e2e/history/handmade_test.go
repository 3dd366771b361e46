package history_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// script answers the simulator's questions by hand: the answers to one question
// in their order, then 1, which is no crash, no oddity, and a resume.
type script map[string][]int

func (s script) draw(what string, n int) int {
	if list := s[what]; len(list) > 0 {
		s[what] = list[1:]
		return list[0]
	}
	return min(1, n-1)
}

const (
	answer500 = 0
	answerOK  = 5
)

// handmade is a history of two webhooks. "w" gets e1, e2 and e3 one second apart:
// e1 is delivered, e2 at its second attempt, and e3 dies after three. "p" pauses
// at the second failure in a row, is resumed, and gets its two events delivered.
func handmade() history.History {
	s := newSim(script{
		"answer": {
			answerOK, answer500, answer500, answerOK, answer500, answer500,
			answer500, answer500, answerOK, answerOK,
		},
	}.draw)
	w := s.endpoint("w", 0)
	w.rules = history.Rules{MaxAttempts: 3, AutoPauseAfter: 10}
	for i, id := range []string{"e1", "e2", "e3"} {
		w.produce(id, s.start.Add(time.Duration(i)*time.Second))
	}
	p := s.endpoint("p", 1)
	p.rules = history.Rules{AutoPauseAfter: 2, MaxAttempts: 5}
	p.produce("p1", s.start)
	p.produce("p2", s.start)
	for _, e := range []*endpoint{w, p} {
		s.h.Rules[e.id] = e.rules
		for e.step() {
		}
	}
	s.finish()
	return s.h
}

// of finds the one of a list that fits.
func of[T any](t *testing.T, list []T, fits func(T) bool) *T {
	t.Helper()
	for i := range list {
		if fits(list[i]) {
			return &list[i]
		}
	}
	t.Fatal("the history has nothing like it")
	return nil
}

func attempt(t *testing.T, h *history.History, id string, n int) *history.Attempt {
	t.Helper()
	return of(t, h.Topics.Attempts, func(a history.Attempt) bool { return a.ID == id && a.Number == n })
}

func request(t *testing.T, h *history.History, id string, n int) *history.Request {
	t.Helper()
	return of(t, h.Requests, func(q history.Request) bool { return q.ID == id && q.Attempt == n })
}

func TestHandmadeHistoryPasses(t *testing.T) {
	report := history.Check(handmade())
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	want := "0 violations; events map[dead:1 delivered:4]; 10 requests, 0 of them repeated; 4 retries, late by p50 1ms, p99 1ms, p99.9 1ms, at most 1ms"
	if got := report.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestEachPromise breaks one promise at a time, and no other.
func TestEachPromise(t *testing.T) {
	for _, c := range []struct {
		promise history.Promise
		words   string // of the violation
		edit    func(t *testing.T, h *history.History)
	}{
		{history.NothingLost, "left no retry record", func(t *testing.T, h *history.History) {
			w := of(t, h.Topics.Waiting, func(w history.Waiting) bool { return w.ID == "e2" })
			h.Topics.Waiting = without(h.Topics.Waiting, w)
		}},
		{history.NothingLost, "it died and is not in the DLQ", func(_ *testing.T, h *history.History) { h.Topics.Dead = nil }},
		{history.NothingLost, "no such request arrived", func(t *testing.T, h *history.History) {
			h.Requests = without(h.Requests, request(t, h, "e1", 1))
		}},
		{history.NothingLost, "neither finished nor parked", func(_ *testing.T, h *history.History) {
			// An event behind all others, that nobody has looked at.
			h.Topics.Events = append(h.Topics.Events, history.Event{Webhook: "w", ID: "e4", Place: record.Source{Topic: "events", Offset: 1000}})
		}},
		{history.OneChain, "attempt 2 at attempts/0/", func(t *testing.T, h *history.History) {
			again := *attempt(t, h, "e2", 2)
			again.Place.Offset += 100
			h.Topics.Attempts = append(h.Topics.Attempts, again)
		}},
		{history.OneChain, "is no hop", func(t *testing.T, h *history.History) {
			again := *of(t, h.Topics.Waiting, func(w history.Waiting) bool { return w.ID == "e2" })
			again.Place.Offset += 100
			again.Written = again.Written.Add(time.Millisecond)
			h.Topics.Waiting = append(h.Topics.Waiting, again)
		}},
		{history.OneChain, "it is in the DLQ 2 times", func(_ *testing.T, h *history.History) {
			h.Topics.Dead = append(h.Topics.Dead, h.Topics.Dead[0])
		}},
		{history.OneChain, "the last state counts", func(t *testing.T, h *history.History) {
			for i := range h.Topics.States {
				if s := &h.Topics.States[i]; s.Webhook == "w" && lastState(h, s) {
					s.Streak-- // e3's two failures after e2's success
				}
			}
		}},
		{history.Repeats, "no incident explains it", func(t *testing.T, h *history.History) {
			again := *request(t, h, "e1", 1)
			again.Start, again.End = again.Start.Add(500*time.Millisecond), again.End.Add(500*time.Millisecond)
			h.Requests = slices.Insert(h.Requests, 1, again)
		}},
		{history.Order, "its first request arrived", func(t *testing.T, h *history.History) {
			// The producer wrote them the other way round.
			a := of(t, h.Topics.Events, func(e history.Event) bool { return e.ID == "e1" })
			b := of(t, h.Topics.Events, func(e history.Event) bool { return e.ID == "e2" })
			swapPlaces(h, a, b)
		}},
		{history.OnTime, "was due at", func(t *testing.T, h *history.History) {
			a, q := attempt(t, h, "e2", 2), request(t, h, "e2", 2)
			a.Started = a.DueAt.Add(-time.Millisecond)
			q.Start, q.End = a.Started, ended(a)
		}},
		{history.Policy, "was the last and is to be followed", func(t *testing.T, h *history.History) {
			// e3 waits for a third attempt where two are allowed.
			h.Rules["w"] = history.Rules{MaxAttempts: 2}
			h.Topics.Attempts = without(h.Topics.Attempts, attempt(t, h, "e3", 3))
			h.Requests = without(h.Requests, request(t, h, "e3", 3))
			h.Topics.Dead = nil
			h.Topics.States = slices.DeleteFunc(h.Topics.States, func(s history.State) bool { return s.Webhook == "w" && lastState(h, &s) })
			h.Final, h.Topics.Committed = false, nil
		}},
		{history.Policy, "the policy has at least 2s", func(t *testing.T, h *history.History) {
			shiftDue(h, attempt(t, h, "e2", 1), -20*time.Millisecond)
		}},
		{history.Policy, "while one for", func(t *testing.T, h *history.History) {
			// e2's first answer is written after e3's first request came.
			a, q := attempt(t, h, "e2", 1), request(t, h, "e2", 1)
			q.End = request(t, h, "e3", 1).Start.Add(time.Millisecond)
			a.Duration = q.End.Sub(a.Started)
			shiftDue(h, a, a.Duration-time.Millisecond)
			b, r := attempt(t, h, "e2", 2), request(t, h, "e2", 2)
			b.Started = a.NextDueAt
			b.DueAt = a.NextDueAt
			r.Start, r.End = b.Started, ended(b)
		}},
		{history.Pauses, "from", func(t *testing.T, h *history.History) {
			// p2's second attempt goes out although the first one paused.
			a, q := attempt(t, h, "p2", 2), request(t, h, "p2", 2)
			a.Started = ended(attempt(t, h, "p2", 1)).Add(500 * time.Millisecond)
			q.Start, q.End = a.Started, ended(a)
		}},
		{history.Pauses, "no state says that it paused", func(t *testing.T, h *history.History) {
			for i := range h.Topics.States {
				h.Topics.States[i].Reasons = nil
			}
		}},
		{history.SameBytes, "has another body", func(t *testing.T, h *history.History) {
			request(t, h, "e1", 1).Value = history.HashOf([]byte("e1\n"))
		}},
		{history.SameBytes, "its dead letter", func(_ *testing.T, h *history.History) {
			h.Topics.Dead[0].Value = history.HashOf(nil)
		}},
	} {
		t.Run(string(c.promise)+": "+c.words, func(t *testing.T) {
			h := handmade()
			c.edit(t, &h)
			report := history.Check(h)
			if len(report.Violations) == 0 || !strings.Contains(report.Err().Error(), c.words) {
				t.Fatalf("want a violation with %q, got %v", c.words, report.Err())
			}
			for _, v := range report.Violations {
				if v.Promise != c.promise {
					t.Errorf("broke another promise: %s", v)
				}
			}
		})
	}
}

// swapPlaces gives two events each other's place in the partition, in every
// record that speaks of them.
func swapPlaces(h *history.History, a, b *history.Event) {
	swap := func(s *record.Source) {
		switch *s {
		case a.Place:
			*s = b.Place
		case b.Place:
			*s = a.Place
		}
	}
	for i := range h.Sent {
		swap(&h.Sent[i].Source)
	}
	for i := range h.Topics.Attempts {
		swap(&h.Topics.Attempts[i].Source)
	}
	for i := range h.Topics.Waiting {
		swap(&h.Topics.Waiting[i].Source)
	}
	a.Place, b.Place = b.Place, a.Place
}

// TestIncidentsExplainWhatTheyCan: a repeated request must have been in flight
// when the incident began, or ended so shortly before that its outcome may have
// been lost.
func TestIncidentsExplainWhatTheyCan(t *testing.T) {
	crash := handmade().Requests[0].Start.Add(time.Hour)
	for _, c := range []struct {
		name       string
		start, end time.Duration // from the crash
		going      bool          // it never ended
		fine       bool
		incident   history.Incident // what it says of itself
	}{
		{"in flight", -time.Minute, time.Second, false, true, history.Incident{}},
		{"never ended", -time.Minute, 0, true, true, history.Incident{}},
		{"just before", -3 * time.Second, -2 * time.Second, false, true, history.Incident{}},
		{"long before", -4 * time.Second, -2*time.Second - 1, false, false, history.Incident{}},
		{"after", 1, time.Second, false, false, history.Incident{}},
		{"of one of its numbers", -time.Minute, time.Second, false, true, history.Incident{Numbers: []int32{3, 0}}},
		{"of another number", -time.Minute, time.Second, false, false, history.Incident{Numbers: []int32{1}}},
		{"not committed for long", -time.Minute, -20 * time.Second, false, true, history.Incident{Uncommitted: 20 * time.Second}},
		{"for longer than it says", -time.Minute, -20*time.Second - 1, false, false, history.Incident{Uncommitted: 20 * time.Second}},
		{"committed since", -3 * time.Second, -2 * time.Second, false, false, history.Incident{Uncommitted: time.Millisecond}},
		{"begun when it goes on", 0, time.Second, false, true, history.Incident{Resumed: true}},
		{"begun before it goes on", -1, time.Second, false, false, history.Incident{Resumed: true}},
		{"begun long after it goes on", 1, time.Second, false, false, history.Incident{Resumed: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := handmade()
			c.incident.Kind, c.incident.From, c.incident.To = "crash", crash, crash
			h.Incidents = []history.Incident{c.incident}
			again := *request(t, &h, "e1", 1)
			again.Start, again.End = crash.Add(c.start), crash.Add(c.end)
			if c.going {
				again.End = time.Time{}
			}
			h.Requests = append(h.Requests, again)
			report := history.Check(h)
			if fine := report.Err() == nil; fine != c.fine || c.fine != (report.Extra == 1) || c.fine != (report.Explained["crash"] == 1) {
				t.Fatalf("want fine %v, got %v and %d extra, explained by %v", c.fine, report.Err(), report.Extra, report.Explained)
			}
		})
	}
}

// TestIncidentExplainsNoMoreThanItCan: one that is good for a single request does not
// excuse a second.
func TestIncidentExplainsNoMoreThanItCan(t *testing.T) {
	for extra, fine := range map[int]bool{1: true, 2: false} {
		h := handmade()
		again := *request(t, &h, "e1", 1)
		again.Start = again.Start.Add(time.Hour)
		again.End = again.Start.Add(time.Second)
		h.Incidents = []history.Incident{{Kind: "stop", Instance: "d1", From: again.Start, To: again.Start, Resumed: true, Most: 1}}
		for range extra {
			h.Requests = append(h.Requests, again)
		}
		broken := slices.ContainsFunc(history.Check(h).Violations, func(v history.Violation) bool { return v.Promise == history.Repeats })
		if broken == fine {
			t.Errorf("%d extra requests: want fine %v, got %v", extra, fine, history.Check(h).Err())
		}
	}
}

// TestRepeatsKeepTheirNumber: an incident makes a request again; it doesn't give
// a finished event another attempt.
func TestRepeatsKeepTheirNumber(t *testing.T) {
	h := handmade()
	again := *request(t, &h, "e2", 2)
	again.Attempt = 3
	h.Incidents = []history.Incident{{Kind: "crash", Instance: "d1", From: again.Start, To: again.Start}}
	h.Requests = append(h.Requests, again)
	report := history.Check(h)
	if len(report.Violations) != 1 || report.Violations[0].Promise != history.OneChain {
		t.Fatalf("want one violation of one chain, got %v", report.Err())
	}
}

// TestSeveralInFlight: neither their order nor their overlap says anything, and a pause
// takes a moment to be known.
func TestSeveralInFlight(t *testing.T) {
	h := handmade()
	h.Slack = time.Second
	h.Rules["w"] = history.Rules{MaxAttempts: 3, Ordering: record.OrderNone}
	h.Rules["p"] = history.Rules{AutoPauseAfter: 2, MaxAttempts: 5, Ordering: record.OrderNone}
	first, second := request(t, &h, "e1", 1), request(t, &h, "e2", 1)
	second.End = request(t, &h, "e3", 1).Start.Add(time.Millisecond)
	*first, *second = *second, *first
	a, q := attempt(t, &h, "p2", 2), request(t, &h, "p2", 2)
	a.Started = ended(attempt(t, &h, "p2", 1)).Add(500 * time.Millisecond)
	q.Start, q.End = a.Started, ended(a)
	if err := history.Check(h).Err(); err != nil {
		t.Fatal(err)
	}
	h.Slack = 400 * time.Millisecond
	if history.Check(h).Err() == nil {
		t.Fatal("an attempt half a second after the pause passed with a slack of 0.4 s")
	}
}

// TestPauseEndsByItself: without a command, the state tells of the end.
func TestPauseEndsByItself(t *testing.T) {
	h := handmade()
	h.Topics.Acts = nil
	if err := history.Check(h).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestParkedWithoutAnyState: nobody knows of what is parked.
func TestParkedWithoutAnyState(t *testing.T) {
	h := handmade()
	h.Final = false
	for i := range h.Topics.Events {
		if e := &h.Topics.Events[i]; e.ID == "e1" {
			h.Topics.Waiting = append(h.Topics.Waiting, history.Waiting{
				Place: record.Source{Topic: "parked"}, Webhook: "w", ID: "e1", Source: e.Place, Value: e.Value, Headers: e.Headers,
			})
		}
	}
	h.Topics.Attempts = without(h.Topics.Attempts, attempt(t, &h, "e1", 1))
	h.Requests = without(h.Requests, request(t, &h, "e1", 1))
	h.Topics.States = nil
	err := history.Check(h).Err()
	if err == nil || !strings.Contains(err.Error(), "has nothing parked any more") {
		t.Fatalf("got %v", err)
	}
}

// TestUnfinished: in a run that is not over, what waits must still be there for
// its owner to find.
func TestUnfinished(t *testing.T) {
	h := handmade()
	h.Final = false
	h.Topics.Attempts = without(h.Topics.Attempts, attempt(t, &h, "e2", 2))
	h.Requests = without(h.Requests, request(t, &h, "e2", 2))
	w := of(t, h.Topics.Waiting, func(w history.Waiting) bool { return w.ID == "e2" })
	retries := history.Partition{Topic: w.Place.Topic, Number: w.Place.Partition}
	lost := func() bool {
		for _, v := range history.Check(h).Violations {
			if v.Promise == history.NothingLost && v.ID == "e2" {
				return true
			}
		}
		return false
	}
	if h.Topics.Committed[retries] = w.Place.Offset; lost() {
		t.Error("the record lies at the committed offset, and counts as lost")
	}
	if h.Topics.Committed[retries]++; !lost() {
		t.Error("the record lies below the committed offset, and nothing followed")
	}
	if delete(h.Topics.Committed, retries); lost() {
		t.Error("nothing is committed, and it counts as lost")
	}
}

// TestResumeCrossesAnAttempt: an attempt that ends while a resume is carried out
// may count before or after it; the state may say either, and nothing else.
func TestResumeCrossesAnAttempt(t *testing.T) {
	for streak, fine := range map[int]bool{0: true, 1: true, 2: false} {
		s := newSim(script{"answer": {answer500, answer500}}.draw)
		w := s.endpoint("w", 0)
		w.rules = history.Rules{MaxAttempts: 5, AutoPauseAfter: 10}
		w.produce("a", s.start)
		w.produce("b", s.start.Add(time.Second))
		for len(s.h.Topics.Attempts) < 2 {
			w.step()
		}
		h := s.h
		h.Final = false
		second := attempt(t, &h, "b", 1)
		h.Topics.Acts = []history.Act{
			{Webhook: "w", ID: "c", Action: record.ActionResume, Written: second.Started},
			{Webhook: "w", ID: "c", Result: record.ResultDone, Written: second.Written.Add(time.Second)},
		}
		h.Topics.States[len(h.Topics.States)-1].Streak = streak
		if err := history.Check(h).Err(); (err == nil) != fine {
			t.Errorf("streak %d: want fine %v, got %v", streak, fine, err)
		}
	}
}

// TestDeletedEndsTheStreak: what fails after a webhook was deleted is nobody's streak;
// what failed before is.
func TestDeletedEndsTheStreak(t *testing.T) {
	for _, c := range []struct {
		name string
		from func(*history.Attempt) time.Time
		fine bool
	}{
		{"before it pauses", func(a *history.Attempt) time.Time { return ended(a).Add(-1) }, true},
		{"after it has paused", func(a *history.Attempt) time.Time { return ended(a).Add(time.Minute) }, false},
	} {
		h := handmade()
		second := attempt(t, &h, "p2", 1)
		// The pause at the second failure is written nowhere.
		h.Topics.States = slices.DeleteFunc(h.Topics.States, func(s history.State) bool { return s.Webhook == "p" && len(s.Reasons) > 0 })
		h.Topics.Deleted = map[string]time.Time{"p": c.from(second)}
		broken := slices.ContainsFunc(history.Check(h).Violations, func(v history.Violation) bool {
			return v.Promise == history.Pauses && strings.Contains(v.Text, "no state says that it paused")
		})
		if broken == c.fine {
			t.Errorf("%s: want fine %v, got %v", c.name, c.fine, history.Check(h).Err())
		}
	}
}

func TestStoryIsTold(t *testing.T) {
	h := handmade()
	h.Topics.Dead = nil
	err := history.Check(h).Err()
	for _, want := range []string{"event at events/0/", "request, attempt 3, arrives", "waits at retry-4s/0/", "log at attempts/0/", "state at"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the story lacks %q:\n%v", want, err)
		}
	}
}

func ended(a *history.Attempt) time.Time { return a.Started.Add(a.Duration) }
