package dispatcher

import (
	"slices"
	"time"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/record"
)

// start sends an event of w's lane; the caller has taken a slot, and a place at the host.
// false: nothing was sent, they are free.
func (n *number) start(now time.Time, w *webhook, it *item, class slotClass, host string) bool {
	w.takeOut(it)
	n.unqueued(it)
	// Existence and state are looked at before every attempt, not only on arrival.
	e, known := n.endpoints.get(w.id)
	switch {
	case !known:
		n.requeue(w, it)
		n.checkExists(w)
		return false
	case e.deleted():
		n.die(now, it, record.WebhookDeleted, "the webhook was deleted")
		return false
	}
	if n.expire(now, it) || n.duplicate(now, it) {
		return false
	}
	if n.prepare(now, w, e); w.stopped() { // stopping has parked the rest of the lane
		if it.topic != n.d.topo.Parked() {
			n.park(now, w, it, n.parkReason(w))
		} else {
			n.leaveInParked(w, it)
		}
		return false
	}
	if tier, ok := n.d.topo.TierOf(it.topic); ok && it.retry() {
		it.able = latest(it.due, w.freeAt, n.freeAt, w.notBefore)
		n.d.metrics.late(tier, now.Sub(it.able))
	}
	w.flight = append(w.flight, it)
	n.limitRate(now, w, e)
	w.startedAt, w.sending = now, it.ProducedAt
	n.inFlight.Add(1)
	n.flying[it] = true
	attempt := delivery.Attempt{Delivery: it.Delivery, Number: it.Attempts + 1, Endpoint: e.ready}
	ctx := n.requestContext()
	n.running.Go(func() {
		result := n.d.sender.Send(ctx, attempt)
		n.d.slots.give(n, class)
		n.d.hosts.give(host)
		n.inbox.post(func() {
			now := n.d.now()
			w.flight = slices.DeleteFunc(w.flight, func(other *item) bool { return other == it })
			w.freeAt = now
			n.inFlight.Add(-1)
			delete(n.flying, it)
			n.guard(it, func() { n.outcome(now, w, it, e, result) })
			n.skipEnds(now, it, result.Class == delivery.ClassDelivered)
			n.makeReady(w)
			n.forget(w)
		})
	})
	return true
}

// requeue puts an event back at the front of its lane.
func (n *number) requeue(w *webhook, it *item) {
	n.queued(it)
	w.putBack(it)
}

// latest is the latest of some times.
func latest(times ...time.Time) (t time.Time) {
	return slices.MaxFunc(times, time.Time.Compare)
}

// postpone makes the lane wait, after a fault of ours.
func (n *number) postpone(now time.Time, w *webhook, wait time.Duration) {
	w.notBefore = latest(w.notBefore, now.Add(wait))
	n.due.Push(w.notBefore, 0, waiting{wake: w})
}
