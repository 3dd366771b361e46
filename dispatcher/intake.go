package dispatcher

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// take looks at one record of one of the number's topics.
func (n *number) take(now time.Time, r *kgo.Record) {
	if r.Attrs.IsControl() || !n.out.received(r.Topic, r.Offset) {
		return
	}
	switch r.Topic {
	case n.d.topo.Events():
		n.event(now, r)
	case n.d.topo.Commands():
		n.command(now, r)
	default:
		n.waiting(now, r)
	}
}

// item wraps a delivery read from r.
func (n *number) item(d *record.Delivery, r *kgo.Record) *item {
	n.sequence++
	return &item{
		Delivery: d, topic: r.Topic, offset: r.Offset, bytes: itemOverhead + d.Size(), sequence: n.sequence, written: r.Timestamp,
		ticket: &ticket{webhook: d.Webhook, place: r.Offset},
	}
}

// itemOverhead is about what an item costs beside its bytes: the delivery, its
// headers' slice, its place in a queue.
const itemOverhead = 700

// guard runs f over it. A panic over one record makes that record a dead letter,
// not the end of the dispatcher.
func (n *number) guard(it *item, f func()) {
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("panic over a record", "source", it.Source.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if it.decided { // where it goes is settled: it must not go there twice
				return
			}
			n.die(n.d.now(), it, record.InvalidRecord, fmt.Sprintf("panic: %v", p))
		}
	}()
	f()
}

// event takes a record of the events topic.
func (n *number) event(now time.Time, r *kgo.Record) {
	d, err := record.FromEvent(r)
	it := n.item(d, r)
	n.guard(it, func() {
		if d.IDDerived && d.Moved == nil { // a moved one was counted where it lay first
			n.d.metrics.withoutID.Inc()
		}
		switch right := n.d.topo.PartitionFor(d.Webhook); {
		case err != nil:
			n.die(now, it, record.InvalidRecord, problem(err))
		case right != n.p && d.Moved != nil:
			n.die(now, it, record.InvalidRecord, fmt.Sprintf("in partition %d again after a move: the partitioners differ on its key", n.p))
		case right != n.p:
			n.d.metrics.misrouted.Inc()
			n.decide(now, it, n.outgoing(it, d.MovedRecord(n.d.topo.Events(), right)))
		default:
			n.arrive(now, it)
		}
	})
}

func problem(err error) string {
	if invalid, ok := errors.AsType[*record.InvalidError](err); ok {
		return invalid.Problem
	}
	return err.Error()
}

// waiting takes a record of a delay topic into the due queue.
func (n *number) waiting(now time.Time, r *kgo.Record) {
	d, err := record.FromWaiting(r)
	it := n.item(d, r)
	n.guard(it, func() {
		if err != nil {
			n.die(now, it, record.InvalidRecord, problem(err))
			return
		}
		if len(d.Repaired) > 0 {
			n.log.Warn("a waiting record had headers that could not be read", "source", d.Source.String(), "headers", d.Repaired)
		}
		if n.endpoints.deleted(it.Webhook) {
			n.die(now, it, record.WebhookDeleted, deletedWaiting)
			return
		}
		tier, _ := n.d.topo.TierOf(r.Topic)
		written := r.Timestamp
		if written.After(now) { // the clock of who wrote it was ahead, or ours has been set back
			written = now
		}
		due := n.clamp(it, written)
		leave, hop := n.d.line.Leave(tier, written, due)
		n.flow.waits(tier, it)
		// Inside the process due times are monotonic: a step of the wall clock must
		// not fire a thousand retries at once.
		n.due.Push(now.Add(leave.Sub(now)), it.bytes, waiting{item: it, tier: tier, hop: hop, due: due})
	})
}

const deletedWaiting = "the webhook was deleted while the event waited for its next attempt"

// hop sends a waiting record on to its next delay topic.
func (n *number) hop(now time.Time, w waiting) {
	n.guard(w.item, func() {
		if n.expire(now, w.item) {
			return
		}
		// As it was clamped: by its own header a corrupt one would be clamped from each
		// hop's timestamp anew, and never be due.
		w.item.DueAt = record.NotBefore(w.due)
		tier := n.d.line.Tier(w.due.Sub(now))
		of := n.webhook(w.item.Webhook)
		defer n.forget(of)
		n.decide(now, w.item, n.retryRecord(of, w.item, tier))
	})
}

// arrive brings a record that could be sent now to where it belongs: a new event,
// a due retry, or one that returns from parked.
func (n *number) arrive(now time.Time, it *item) {
	w := n.webhook(it.Webhook)
	defer n.forget(w)
	e, known := n.endpoints.get(it.Webhook)
	if known && e.deleted() {
		n.die(now, it, record.WebhookDeleted, "the webhook was deleted")
		return
	}
	if n.expire(now, it) {
		return
	}
	if known {
		n.prepare(now, w, e)
	}
	switch {
	case it.topic == n.d.topo.Parked() && w.stopped():
		n.leaveInParked(w, it)
		return
	case it.topic == n.d.topo.Parked():
		w.queue.push(it)
	case w.stopped():
		n.park(now, w, it, n.parkReason(w))
		return
	case it.retry():
		w.retries.push(it)
	case w.parkedCount() > 0:
		// While anything is parked, new events queue behind it.
		n.park(now, w, it, record.ParkOverflow)
		return
	case w.queue.len() >= laneLimit:
		w.queue.push(it)
		n.queued(it)
		n.log.Info("lane parked, it was full", "webhook", w.id, "queued", w.queue.len())
		n.parkQueue(now, w, record.ParkOverflow)
		return
	default:
		w.queue.push(it)
		n.flow.aging.push(it.ticket)
	}
	n.queued(it)
	if !known {
		n.checkExists(w)
		return
	}
	n.makeReady(w)
}

// roundingUp is how much longer than the delay a due time may lie behind the
// timestamp of its record: it is rounded up to a millisecond, and the timestamp, at
// the earliest that of the end of the attempt, is cut to one.
const roundingUp = 2 * time.Millisecond

// clamp brings a due time read from a record within what the schedule could have
// produced: one corrupt header must not park a partition for ever.
func (n *number) clamp(it *item, producedAt time.Time) time.Time {
	ceiling := n.d.schedule.Ceiling(it.Attempts, policyOf(n.config(it.Webhook))) + roundingUp
	// A hop is produced later than the attempt it belongs to, so this is generous to it.
	return retrytiers.Clamp(it.DueAt.Time, producedAt, ceiling)
}
