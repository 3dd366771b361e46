package history_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// mutation breaks a correct history in one place. It says false where the
// history has no such place.
type mutation struct {
	name    string
	promise history.Promise // that is broken, perhaps beside others
	apply   func(h *history.History, pick func(n int) int) bool
}

// one picks one of a list that fits, or nil.
func one[T any](list []T, pick func(int) int, fits func(*T) bool) *T {
	var found []*T
	for i := range list {
		if fits(&list[i]) {
			found = append(found, &list[i])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[pick(len(found))]
}

func any1[T any](*T) bool { return true }

// without removes what p points to from the list.
func without[T any](list []T, p *T) []T {
	for i := range list {
		if &list[i] == p {
			return slices.Delete(list, i, i+1)
		}
	}
	panic("not of this list")
}

func failed(a *history.Attempt) bool    { return a.Outcome == record.Failed }
func delivered(a *history.Attempt) bool { return a.Outcome == record.Delivered }
func numbered(a *history.Attempt) bool  { return a.Number > 0 }
func answered(q *history.Request) bool  { return q.Status > 0 }

func retry(w *history.Waiting) bool  { return w.Tier > 0 }
func parked(w *history.Waiting) bool { return w.Tier == 0 }

func paused(s *history.State) bool { return len(s.Reasons) > 0 }

// attemptOf is the log's record that a waiting record followed.
func attemptOf(h *history.History, w *history.Waiting) *history.Attempt {
	for i := range h.Topics.Attempts {
		if a := &h.Topics.Attempts[i]; a.Source == w.Source && a.Number == w.Attempts {
			return a
		}
	}
	return nil
}

// shiftDue moves the due time after a failed attempt, wherever it is written.
func shiftDue(h *history.History, a *history.Attempt, by time.Duration) {
	a.NextDueAt = a.NextDueAt.Add(by)
	for i := range h.Topics.Waiting {
		if w := &h.Topics.Waiting[i]; w.Source == a.Source && w.Attempts == a.Number {
			w.DueAt = w.DueAt.Add(by)
		}
	}
}

// lastState is whether s is its webhook's last.
func lastState(h *history.History, s *history.State) bool {
	for _, x := range h.Topics.States {
		if x.Webhook == s.Webhook && x.Place.Offset > s.Place.Offset {
			return false
		}
	}
	return true
}

func resumed(h *history.History, webhook string) bool {
	return slices.ContainsFunc(h.Topics.Acts, func(a history.Act) bool { return a.Webhook == webhook })
}

// singleFile is whether the webhook has one request at a time.
func singleFile(h *history.History, webhook string) bool {
	o := h.Rules[webhook].Ordering
	return o == "" || o == record.OrderFirstAttempt || o == record.OrderStrict
}

// lone is whether there is no other event of an id.
func lone(h *history.History, id string) bool {
	n := 0
	for _, s := range h.Sent {
		if s.ID == id {
			n++
		}
	}
	return n == 1
}

// far is after the end of every run.
var far = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEveryMutationIsCaught(t *testing.T) {
	for _, m := range slices.Concat(chainMutations, requestMutations, pauseMutations, orderMutations) {
		t.Run(m.name, func(t *testing.T) {
			caught := 0
			for seed := uint64(0); caught < 30; seed++ {
				if seed == 5000 {
					t.Fatalf("only %d of 5000 histories have a place for it", caught)
				}
				r := rand.New(rand.NewPCG(seed, 1))
				h := simulate(func(_ string, n int) int { return r.IntN(n) })
				if !m.apply(&h, r.IntN) {
					continue
				}
				report := history.Check(h)
				if !slices.ContainsFunc(report.Violations, func(v history.Violation) bool { return v.Promise == m.promise }) {
					t.Fatalf("seed %d: not caught as %q: %v", seed, m.promise, report.Err())
				}
				caught++
			}
		})
	}
}
