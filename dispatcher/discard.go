package dispatcher

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// discard lets a webhook's parked events die that were produced before a time. They
// are read from the front, and die some at a time: what has died is committed before
// the next ones do. The webhook's state says after each step which are left, so a crash
// repeats none: the next owner begins the command again, with the rest.
//
// Meanwhile nothing of the webhook is read back. The webhook's cursor goes along as
// long as nothing stays, so that what is done needs no list.
type discard struct {
	order
	at      int64 // where reading goes on
	kept    bool  // the cursor stands before at, at the first event that stays
	died    int
	landing int   // parked before the command came, and not committed yet
	end     int64 // what was parked then ends here; known when all of it has landed
}

// maxDone bounds how many events may be dealt with before one that is not: they
// are listed one by one in the state, 10,000 in about 100 kB.
const maxDone = 10_000

// How many die in one step at most. A fetch can bring far more than its bytes: they
// are compressed.
const (
	discardRecords = 1_000
	discardBytes   = 1 << 20
)

// discardRest is the wait for what can't be read yet, or stands in the way.
const discardRest = 50 * time.Millisecond

func (n *number) discardParked(w *webhook, o order) answer {
	switch {
	case o.Before.IsZero():
		return refused("discard_parked needs a time: events produced before it are discarded")
	case w.parkedCount() == 0:
		return done("discarded: 0, none is parked")
	}
	w.parked.inPass = false
	n.parked.sweep.leaves(w)
	for _, it := range w.queue.take(func(it *item) bool { return it.topic == n.d.topo.Parked() }) {
		n.unqueued(it)
		n.leaveInParked(w, it)
	}
	w.discard = &discard{order: o, at: w.parked.cursor, landing: w.parked.unacked, end: n.parked.end}
	n.readToDiscard(w, 0)
	return later
}

// readToDiscard reads the next fetch in a goroutine of its own.
func (n *number) readToDiscard(w *webhook, wait time.Duration) {
	d := w.discard
	if d == nil || n.draining { // the next owner begins it again
		return
	}
	from := d.at
	n.running.Go(func() {
		for n.rest(wait); n.ctx.Err() == nil; n.rest(time.Second) {
			reader := kafka.NewReader(n.d.plain, n.d.topo.Parked(), n.p, from)
			batch, err := reader.Next(n.ctx, 0, passBytes)
			if err == nil {
				n.inbox.post(func() { n.fetchedToDiscard(w, d, from, batch) })
				return
			}
			n.log.Warn("reading parked events to discard failed, trying again", "webhook", w.id, "error", err)
		}
	})
}

func (n *number) fetchedToDiscard(w *webhook, d *discard, from int64, b kafka.Batch) {
	switch {
	case w.discard != d || n.draining:
	case d.at != from: // something that lies before it came back
		n.readToDiscard(w, 0)
	default:
		now := n.d.now()
		if a := n.trying(d.order, func() answer { return n.discardBatch(now, w, b) }); a != later {
			n.discardEnds(now, w, a)
		}
	}
}

// discardBatch lets those of a fetch die that are old enough.
func (n *number) discardBatch(now time.Time, w *webhook, b kafka.Batch) answer {
	d, next := w.discard, min(b.Next, n.parked.end)
	var last *outgoing
	died, bytes := 0, 0
	for i, r := range b.Records {
		switch {
		case r.Offset >= next:
			continue
		case died >= discardRecords || bytes >= discardBytes:
			d.at, b.Records = r.Offset, b.Records[i:]
			last.landed = func(*outgoing) { n.fetchedToDiscard(w, d, r.Offset, b) }
			return later
		}
		if string(r.Key) != w.id || !w.waitsInParked(r.Offset) {
			continue
		}
		it, _ := n.parkedItem(r) // what is wrong with it does not matter any more
		switch young := !it.ProducedAt.Before(d.Before.Time); {
		case young && !d.kept:
			d.kept, w.parked.cursor = true, r.Offset
			continue
		case young:
			continue
		case !d.kept && w.scattered(r.Offset, r.Offset+1): // behind a request in flight, which ends
			d.at = r.Offset
			n.readToDiscard(w, discardRest)
			return later
		case d.kept && w.scattered(r.Offset, w.parked.cursor):
			return failed("discarded: %d; the rest lies scattered among more than %d that are discarded already: resume the webhook, or discard up to a later time", d.died, maxDone)
		case !d.kept:
			w.parked.cursor = r.Offset + 1
		}
		records := n.deathRecords(now, it, record.Discarded, byHand("discarded", d.Command))
		last = records[0]
		n.decide(now, it, records...)
		d.died++
		died++
		bytes += it.bytes
	}
	if !d.kept {
		w.parked.cursor = max(w.parked.cursor, next)
	}
	stands := d.at == next
	d.at = next
	switch {
	case w.parkedCount() == 0 || d.landing == 0 && next >= d.end:
		return done("discarded: %d, still parked: %d", d.died, w.parkedCount())
	case last != nil:
		last.landed = func(*outgoing) { n.readToDiscard(w, 0) }
	case stands:
		n.readToDiscard(w, discardRest)
	default:
		n.readToDiscard(w, 0)
	}
	return later
}

// discardEnds: what stays is read back again, if the webhook is active.
func (n *number) discardEnds(now time.Time, w *webhook, a answer) {
	o := w.discard.order
	w.discard = nil
	n.parked.active[w], w.parked.quick = true, false
	n.end(now, o, a)
	n.forget(w)
}

// discardLanded counts what was parked before the command came.
func (n *number) discardLanded(w *webhook) {
	if d := w.discard; d != nil && d.landing > 0 {
		d.landing--
		d.end = n.parked.end
	}
}

// waitsInParked: whether a parked record of the webhook is neither dealt with nor in memory.
func (w *webhook) waitsInParked(offset int64) bool {
	return offset >= w.parked.cursor && w.waitsAt(offset)
}

// waitsAt is waitsInParked wherever the reading has got to.
func (w *webhook) waitsAt(offset int64) bool {
	if w.state.Parked == nil {
		return false
	}
	_, dealtWith := slices.BinarySearch(w.state.Parked.Done, offset)
	return !dealtWith && !slices.Contains(w.parked.loaded, offset)
}

// scattered: whether the state lists as much as it may, and would have to list one more
// when the one at offset has been dealt with, and the webhook's place is cursor.
func (w *webhook) scattered(offset, cursor int64) bool {
	if len(w.parked.loaded) > 0 {
		cursor = min(cursor, w.parked.loaded[0])
	}
	return cursor <= offset && w.state.Parked != nil && len(w.state.Parked.Done) >= maxDone
}

// parkedItem is a record of the parked topic, not counted as read back.
func (n *number) parkedItem(r *kgo.Record) (*item, error) {
	d, err := record.FromWaiting(r)
	return n.item(d, r), err
}
