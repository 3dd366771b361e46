package dispatcher

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// A webhook can ask to be left alone for a while: by a Retry-After beside 429 or 503,
// or by its rate limit. Waiting is no attempt.
const (
	// maxRetryAfter bounds what a Retry-After asks for.
	maxRetryAfter = time.Hour
	// shortWait is waited for in memory. For longer ones the webhook is stopped like one
	// that is held by hand: its events are parked, and go out when the wait is over.
	shortWait = 30 * time.Second
)

// wait keeps all requests of a webhook back until a time. The state remembers it.
func (n *number) wait(now time.Time, w *webhook, until time.Time) {
	if !until.After(w.state.HoldUntil.Time) {
		return
	}
	w.state.HoldUntil = record.NotBefore(until)
	n.log.Info("webhook asked to wait", "webhook", w.id, "until", w.state.HoldUntil.String())
	wait := w.state.HoldUntil.Sub(now)
	if wait > shortWait {
		n.stopOrGo(now, w, func() { w.waits = true })
	}
	n.postpone(now, w, wait)
}

// restoreWait goes on with the wait that a state on record names.
func (n *number) restoreWait(now time.Time, w *webhook) {
	if w.state.HoldUntil.IsZero() {
		return
	}
	wait := min(w.state.HoldUntil.Sub(now), maxRetryAfter) // the clock of who wrote it may have been far ahead
	w.waits = wait > shortWait
	n.postpone(now, w, max(0, wait))
}

// wakes looks at a webhook whose time has come.
func (n *number) wakes(now time.Time, w *webhook) {
	if n.webhooks[w.id] != w { // it was forgotten, and another has its id
		return
	}
	waited := !w.notBefore.IsZero() && !now.Before(w.notBefore)
	if waited {
		w.freeAt, w.notBefore = latest(w.freeAt, w.notBefore), time.Time{}
	}
	// Not by what the state says: the wall clock may have been set meanwhile.
	if waited && !w.state.HoldUntil.IsZero() {
		w.state.HoldUntil = record.Time{}
		n.stopOrGo(now, w, func() { w.waits = false })
		n.save(now, w)
	}
	n.autoResume(now, w)
	n.makeReady(w)
	n.forget(w)
}

// limitRate spaces the requests of a webhook evenly; waiting earns no burst.
func (n *number) limitRate(now time.Time, w *webhook, e *endpoint) {
	if e.config.RateLimit > 0 {
		n.postpone(now, w, time.Duration(min(float64(time.Second)/e.config.RateLimit, float64(24*time.Hour))))
		w.freeAt = w.notBefore
	}
}

// autoResume ends a pause by failures when the webhook's configuration wants it so,
// or sees to it that it is looked at again.
func (n *number) autoResume(now time.Time, w *webhook) {
	e, known := n.endpoints.get(w.id)
	if !known || !w.state.HasPause(record.PauseFailures) || !e.mayResume() {
		return
	}
	after := time.Duration(n.config(w.id).AutoResume)
	if after == 0 {
		return
	}
	if at := w.state.PausedAt.Add(after); now.Before(at) {
		n.due.Push(now.Add(at.Sub(now)), 0, waiting{wake: w})
		return
	}
	n.log.Info("webhook resumed by itself", "webhook", w.id, "paused_at", w.state.PausedAt.String())
	w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}
	n.unpause(now, w, record.PauseFailures)
}
