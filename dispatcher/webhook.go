package dispatcher

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// webhook is what a number holds of one webhook while there is something to
// hold: its lane, its state, its place in the parked topic.
type webhook struct {
	id    string
	state record.State

	// The lane. Due retries go before first attempts, and before what returns from
	// parked; within each, the order in which they came.
	retries   fifo[*item]
	queue     fifo[*item]
	flight    []*item     // with requests in flight
	startedAt time.Time   // when the last request started
	sending   record.Time // when its event was produced
	listed    bool        // it is in one of the number's ready lists
	notBefore time.Time   // a fault of ours, its rate limit, or a short wait it asked for: nothing starts before
	freeAt    time.Time   // when it could last take a request again
	widening  int         // after a resume: how many requests may be in flight; 0 when that is over
	dying     int         // heads whose deaths are not committed
	waits     bool        // a long wait that it asked for

	// checking: whether the webhook exists is being found out.
	checking bool
	// idle: nobody has asked for it for a while.
	idle bool
	// heldBy is the hold of its tenant or host that concerns it.
	heldBy  *record.Hold
	discard *discard // what a command does to its parked events

	parked parkedPlace
}

func (n *number) webhook(id string) *webhook {
	w := n.known(id)
	if w == nil {
		w = &webhook{id: id, state: record.State{Webhook: id, Status: record.Active}}
		n.webhooks[id] = w
	}
	return w
}

// known is the webhook if there is anything to hold of it, else nil.
func (n *number) known(id string) *webhook {
	w := n.webhooks[id]
	if w == nil {
		w = n.wake(id)
	}
	if w != nil {
		w.idle = false
	}
	return w
}

// forget drops a webhook of which there is nothing to hold.
func (n *number) forget(w *webhook) {
	if n.webhooks[w.id] == w && !w.busy() && w.state.Healthy() {
		delete(n.webhooks, w.id)
	}
}

// busy: there is more of it in memory than its state.
func (w *webhook) busy() bool {
	return !w.notBefore.IsZero() || w.lane() > 0 || len(w.flight) > 0 || w.dying > 0 || w.listed || w.checking || w.parked.unacked > 0 || w.discard != nil
}

func (w *webhook) lane() int { return w.retries.len() + w.queue.len() }

func (w *webhook) paused() bool { return w.state.Status == record.Paused }

func (w *webhook) next() (*item, bool) {
	if it, ok := w.retries.pop(); ok {
		return it, true
	}
	return w.queue.pop()
}

// takeOut takes one event out of the lane.
func (w *webhook) takeOut(it *item) {
	for _, q := range []*fifo[*item]{&w.retries, &w.queue} {
		if first, ok := q.peek(); ok && first == it {
			q.pop()
			return
		}
		if len(q.take(func(other *item) bool { return other == it })) > 0 {
			return
		}
	}
}

// putBack undoes next, for a request that was never sent, or cut.
func (w *webhook) putBack(it *item) {
	if it.retry() {
		w.retries.putBack(it)
		return
	}
	w.queue.putBack(it)
}

// retry: whether it came through a delay topic.
func (it *item) retry() bool { return !it.due.IsZero() }

// pause adds a reason. What is queued is parked, due retries first, in order.
func (n *number) pause(now time.Time, w *webhook, reason record.PauseReason) {
	if !w.paused() {
		n.paused++
		w.state.PausedAt = record.At(now)
		n.log.Warn("webhook paused", "webhook", w.id, "reason", string(reason), "consecutive_failures", w.state.ConsecutiveFailures)
	}
	n.stopOrGo(now, w, func() { w.state.AddPause(reason) })
	n.save(now, w)
	n.autoResume(now, w)
}

// unpause takes reasons away; without any left the webhook is active, and what is
// parked goes out first.
func (n *number) unpause(now time.Time, w *webhook, reasons ...record.PauseReason) {
	was := w.paused()
	n.stopOrGo(now, w, func() {
		for _, r := range reasons {
			w.state.RemovePause(r)
		}
	})
	if was && !w.paused() {
		n.paused--
		w.state.PausedAt = record.Time{}
		n.log.Info("webhook active again", "webhook", w.id, "parked", w.parkedCount())
	}
	n.save(now, w)
}

// parkReason is what a record parked now says of its webhook.
func (n *number) parkReason(w *webhook) record.ParkReason {
	switch {
	case !w.stopped():
		return record.ParkOverflow
	case !w.paused():
		return record.ParkHold
	case slices.Equal(w.state.PauseReasons, []record.PauseReason{record.PauseConfig}):
		return record.ParkConfig
	}
	return record.ParkPaused
}

// save puts the webhook's state into the next transaction.
func (n *number) save(now time.Time, w *webhook) {
	w.state.Version = record.NextVersion(w.state.Version, now)
	n.out.decide(now, decision{states: map[string]record.State{w.id: cloneState(w.state)}})
}

// cloneState copies what the number's goroutine goes on changing in place.
func cloneState(s record.State) record.State {
	if s.Parked != nil {
		parked := *s.Parked
		parked.Done = slices.Clone(parked.Done)
		s.Parked = &parked
	}
	return s
}

// parkedCount is how many of its events lie in the parked topic.
func (w *webhook) parkedCount() int64 {
	if w.state.Parked == nil {
		return 0
	}
	return w.state.Parked.Count
}
