package dispatcher

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
)

// What is remembered is what was delivered within the window, whatever comes in
// between; a limit only forgets, the oldest first.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(0, 20).Draw(t, "window")) * time.Second
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		r := newRecent(window, limit)
		now := time.Unix(1_700_000_000, 0)
		delivered := map[record.DeliveredID]time.Time{}
		forgot := false
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			id := record.DeliveredID{byte(rapid.IntRange(0, 40).Draw(t, "id"))}
			if rapid.Bool().Draw(t, "deliver") {
				forgot = !r.add(now, now, id) || forgot
				delivered[id] = now
				if !r.has(now, id) && window > 0 {
					t.Fatalf("an id just delivered is not known")
				}
			}
			at, ok := delivered[id]
			want := ok && now.Sub(at) < window
			if got := r.has(now, id); got != want && (got || !forgot) {
				t.Fatalf("has: %v, want %v: delivered %s ago, window %s", got, want, now.Sub(at), window)
			}
			if len(r.last) > limit || r.order.len() > limit {
				t.Fatalf("%d ids in %d entries are kept, the limit is %d", len(r.last), r.order.len(), limit)
			}
		}
		if r.prune(now.Add(window)); len(r.last) != 0 || r.order.len() != 0 {
			t.Fatalf("%d ids and %d entries are left after the window", len(r.last), r.order.len())
		}
	})
}
