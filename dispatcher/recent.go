package dispatcher

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// recentLimit is how many delivered ids a number remembers at most, 12 MB of them.
// Beyond it the oldest are forgotten before their window has passed.
const recentLimit = 200_000

// recent remembers which events were delivered within the window in which a second
// copy of one is taken for a duplicate. A window of 0 remembers nothing.
type recent struct {
	window time.Duration
	limit  int
	last   map[record.DeliveredID]int64 // when, in unix ms
	order  fifo[deliveredAt]
	told   bool // that not all are remembered
}

type deliveredAt struct {
	id record.DeliveredID
	at int64
}

func newRecent(window time.Duration, limit int) *recent {
	return &recent{window: window, limit: limit, last: map[record.DeliveredID]int64{}}
}

// add remembers a delivery; the order of calls is that of the times, but for steps
// of the clock. false: another one had to be forgotten too early for it.
func (r *recent) add(now, at time.Time, id record.DeliveredID) (fits bool) {
	fits = true
	if r.window == 0 || now.Sub(at) >= r.window {
		return fits
	}
	r.prune(now)
	if r.order.len() >= r.limit {
		r.forgetOldest()
		fits = false
	}
	ms := at.UnixMilli()
	r.last[id] = ms
	r.order.push(deliveredAt{id, ms})
	return fits
}

// has: whether the event was delivered within the window.
func (r *recent) has(now time.Time, id record.DeliveredID) bool {
	at, ok := r.last[id]
	return ok && now.UnixMilli()-at < r.window.Milliseconds()
}

// prune forgets what is older than the window.
func (r *recent) prune(now time.Time) {
	for {
		oldest, ok := r.order.peek()
		if !ok || now.UnixMilli()-oldest.at < r.window.Milliseconds() {
			return
		}
		r.forgetOldest()
	}
}

func (r *recent) forgetOldest() {
	oldest, _ := r.order.pop()
	if r.last[oldest.id] == oldest.at { // not delivered again since
		delete(r.last, oldest.id)
	}
}
