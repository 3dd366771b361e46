package dispatcher

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// What may start next of a webhook follows its ordering:
//
//   - first_attempt: one request at a time, due retries first;
//   - strict: the same, and after a failure nothing but the failed event, the head,
//     until it is delivered or dead;
//   - key, strict_key: the same for each ordering key by itself;
//   - none: anything, up to max_in_flight at once.
//
// A head waits for its next attempt in a delay topic like any other event. What keeps
// the others behind it is the webhook's state, which is written in the transaction of
// the attempt that failed, and read back after a crash.

const (
	// headsLimit is how many failing keys of a webhook keep heads of their own. With
	// more, nothing but heads starts: the webhook is strict as a whole.
	headsLimit = 64
	// halfOpenFrom is the streak from which on requests go out one at a time.
	halfOpenFrom = 5
)

func strictly(o record.Ordering) bool { return o == record.OrderStrict || o == record.OrderStrictKey }

func byKey(o record.Ordering) bool { return o == record.OrderKey || o == record.OrderStrictKey }

// limit is how many requests of the webhook may be in flight.
func (w *webhook) limit(c *record.Endpoint) int {
	limit := c.MaxInFlightOr()
	if streak := w.state.ConsecutiveFailures; streak > 0 {
		if pauseAfter := c.AutoPauseAfterOr(); pauseAfter > 0 {
			limit = min(limit, max(1, pauseAfter-streak)) // ten are ten with eight in flight, too
		}
		if streak >= halfOpenFrom {
			limit = 1
		}
	}
	if w.widening > 0 {
		limit = min(limit, w.widening)
	}
	return limit
}

// candidate is the event of w that may start next; nil when none may. It stays where
// it is.
func (n *number) candidate(now time.Time, w *webhook) *item {
	if w.lane() == 0 || w.stopped() || w.checking || now.Before(w.notBefore) {
		return nil
	}
	c := n.config(w.id)
	if len(w.flight) >= w.limit(c) {
		return nil
	}
	var kept []string // keys of which an event waits for a copy of it, which is in flight under another key
	may := func(it *item) bool {
		switch {
		case byKey(c.OrderingOr()) && slices.Contains(kept, it.PartitionKey):
			return false
		case w.copyFlies(it):
			kept = append(kept, it.PartitionKey)
			return false
		}
		return w.may(it, c.OrderingOr())
	}
	if it, ok := w.retries.find(may); ok {
		return it
	}
	it, _ := w.queue.find(may)
	return it
}

// may: whether nothing that it must not overtake, or must not go beside, is before it.
func (w *webhook) may(it *item, ordering record.Ordering) bool {
	if byKey(ordering) && slices.ContainsFunc(w.flight, func(other *item) bool { return other.PartitionKey == it.PartitionKey }) {
		return false
	}
	if !strictly(ordering) {
		return true
	}
	if w.dying > 0 && (ordering == record.OrderStrict || w.state.HeadAt(it.Source) == nil) {
		return false // the death of a head is not committed yet
	}
	if w.state.HeadAt(it.Source) != nil {
		return true
	}
	if ordering == record.OrderStrict {
		return w.state.HeadCount() == 0
	}
	if w.state.HeadCount() >= headsLimit {
		return false
	}
	free, key := true, it.keyHash()
	w.state.EachHead(func(h *record.Head) bool {
		free = h.Key != key
		return free
	})
	return free
}

// copyFlies: whether a copy of it is in flight, for whose outcome it waits.
func (w *webhook) copyFlies(it *item) bool {
	return slices.ContainsFunc(w.flight, func(other *item) bool { return other.ID == it.ID })
}

// keyHash is what a head says of its ordering key.
func (it *item) keyHash() string {
	if it.hash == "" {
		it.hash = record.OrderingKeyHash(it.PartitionKey)
	}
	return it.hash
}

// noteHead notes that nothing overtakes it from now on; in an order that is not strict,
// that it is no head (any more).
func (n *number) noteHead(w *webhook, it *item, ordering record.Ordering) {
	if !strictly(ordering) {
		w.state.DropHead(it.Source)
		return
	}
	before := w.state.HeadCount()
	w.state.SetHead(record.Head{Source: it.Source, Attempts: it.Attempts, DueAt: it.DueAt, Key: it.keyHash()})
	if ordering == record.OrderStrictKey && before < headsLimit && w.state.HeadCount() >= headsLimit {
		n.log.Warn("so many keys of a webhook fail that only their events start", "webhook", w.id, "keys", w.state.HeadCount())
	}
}

// headEnds: nothing waits for it any more, but for the commit of its death: a crash
// before that would send it once more, after its successor.
func (n *number) headEnds(w *webhook, it *item, records []*outgoing) {
	w.state.DropHead(it.Source)
	for _, o := range records {
		if o.rec.Topic != n.d.topo.DLQ() {
			continue
		}
		w.dying++
		o.landed = func(*outgoing) {
			w.dying--
			n.makeReady(w)
			n.forget(w)
		}
	}
}

// goesOn: whether the event is still on its way after what was decided.
func (n *number) goesOn(records []*outgoing) bool {
	for _, o := range records {
		if _, waits := n.d.topo.TierOf(o.rec.Topic); waits || o.rec.Topic == n.d.topo.Parked() || o.rec.Topic == n.d.topo.Events() {
			return true
		}
	}
	return false
}

// retryRecord is the record that takes an event to a delay topic.
func (n *number) retryRecord(w *webhook, it *item, tier time.Duration) *outgoing {
	out := n.outgoing(it, it.RetryRecord(n.d.topo.Retry(tier), n.p))
	source := it.Source
	out.landed = func(o *outgoing) {
		if o.rec.Topic == n.d.topo.DLQ() && n.webhooks[w.id] == w {
			n.diedInstead(w, source)
		}
	}
	return out
}

// diedInstead: its record was refused, and a dead letter was written in its place.
func (n *number) diedInstead(w *webhook, source record.Source) {
	if w.state.DropHead(source) {
		n.save(n.d.now(), w)
		n.makeReady(w)
	}
}

// seeks: whether a head lies in the parked topic that is not in memory.
func (n *number) seeks(w *webhook) (seeks bool) {
	w.state.EachHead(func(h *record.Head) bool {
		seeks = h.Parked && !w.holds(h.Source)
		return !seeks
	})
	return seeks
}

// holds: whether the event that lay at source is in memory.
func (w *webhook) holds(source record.Source) bool {
	is := func(it *item) bool { return it.Source == source }
	_, queued := w.queue.find(is)
	return queued || slices.ContainsFunc(w.flight, is)
}

// sought: whether r is a head that is looked for.
func (n *number) sought(w *webhook, r *kgo.Record) bool {
	d, err := record.FromWaiting(r)
	if err != nil {
		return false
	}
	h := w.state.HeadAt(d.Source)
	return h != nil && h.Parked
}

// soughtAll ends a search. A head that was not found where all has been looked at is
// gone, and must not keep the others for ever.
func (n *number) soughtAll(w *webhook) {
	if w.parked.seek >= n.parked.end && w.parked.unacked == 0 && n.headsGone(w) {
		n.save(n.d.now(), w)
	}
}

// headsGone drops the heads that are said to be parked, and can't be: what they keep
// back goes on. true: there were some.
func (n *number) headsGone(w *webhook) bool {
	var gone []record.Source
	w.state.EachHead(func(h *record.Head) bool {
		if h.Parked && !w.holds(h.Source) {
			gone = append(gone, h.Source)
		}
		return true
	})
	for _, source := range gone {
		n.log.Error("a parked event is missing that others wait for, retention may have taken it", "webhook", w.id, "source", source.String())
		w.state.DropHead(source)
	}
	if len(gone) > 0 {
		n.makeReady(w)
	}
	return len(gone) > 0
}

// place is the next offset that a pass looks at for it.
func (p *parkedPlace) place() int64 {
	if p.seeking {
		return p.seek
	}
	return p.cursor
}

// pass notes that a pass has come to an offset.
func (p *parkedPlace) pass(offset int64) {
	if p.seeking {
		p.seek = max(p.seek, offset)
		return
	}
	p.cursor = max(p.cursor, offset)
}
