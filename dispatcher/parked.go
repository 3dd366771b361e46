package dispatcher

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// The parked topic holds events back whose webhook is paused, or can't keep up.
// It has no consumer group: each webhook's state says which part of it is the
// webhook's. From is a lower bound of its lowest parked offset, Done are those
// beyond it that have been dealt with, Count is how many are left.
//
// One rule keeps the order: while a webhook has anything parked, every new event
// of it is parked too.

const (
	// drainLane is how many events of one webhook are read back at a time, once it has
	// answered the first within quickAnswer.
	drainLane   = 100
	quickAnswer = time.Second
	quickRate   = 20 // requests per second, of a webhook that limits them
	// passBytes is how much one fetch of a pass takes, compressed: in memory it may be
	// ten times as much.
	passBytes = 256 << 10
	// passRest is the wait after a pass that found nothing: what was just committed
	// becomes readable a moment later, when its markers are written.
	passRest = 50 * time.Millisecond
)

// parkedPlace is where a webhook's return from parked stands.
type parkedPlace struct {
	cursor  int64   // the next offset to look at
	loaded  []int64 // in the lane or in flight, ascending
	unacked int     // parked, but not yet committed
	inPass  bool
	quick   bool // the last of what was read back was answered quickly, whatever the answer
	// expiring: it was said that its events die of age.
	expiring bool

	// A head that lies here goes out first, whatever lies before it: it is sought.
	seeking bool
	seek    int64 // the next offset to look for it
}

// parkedReader is the one reader that a number's returning webhooks share.
type parkedReader struct {
	end       int64             // one after the last record that is ours and committed
	active    map[*webhook]bool // those that may have events to read back
	running   bool
	found     bool
	notBefore time.Time
	gaveBack  time.Time // when it was looked for what could be given back
	// kept is the batch that the last pass stopped in. A batch is far more than one
	// webhook takes at a time: without it, it would be read dozens of times.
	kept kafka.Batch

	sweep  *sweep    // through its front, for what has become too old
	lookAt time.Time // when the next one may begin
}

// park holds an event back.
func (n *number) park(now time.Time, w *webhook, it *item, why record.ParkReason) {
	it.DueAt = record.Time{}
	n.decide(now, it, n.toParked(now, w, it, why))
	n.save(now, w)
}

// toParked is the record that parks it; the webhook's state counts it from now on.
func (n *number) toParked(now time.Time, w *webhook, it *item, why record.ParkReason) *outgoing {
	if w.state.Parked == nil {
		w.state.Parked = &record.Parked{From: n.parked.end, Last: n.parked.end, OldestAt: record.At(now)}
		w.parked.cursor = n.parked.end
	}
	w.state.Parked.Count++
	w.parked.unacked++
	n.parked.active[w] = true
	if h := w.state.HeadAt(it.Source); h != nil {
		w.state.SetHead(record.Head{Source: h.Source, Key: h.Key, Attempts: it.Attempts, Parked: true, Extra: h.Extra})
	}
	out := n.outgoing(it, it.ParkedRecord(n.d.topo.Parked(), n.p, why))
	source := it.Source
	out.landed = func(o *outgoing) { n.parkedLanded(w, source, o) }
	return out
}

func (n *number) parkedLanded(w *webhook, source record.Source, o *outgoing) {
	w.parked.unacked--
	if p := w.state.Parked; o.rec.Topic != n.d.topo.Parked() { // it was refused, and died instead
		p.Count--
		n.diedInstead(w, source)
	} else {
		n.parked.end = max(n.parked.end, o.rec.Offset+1)
		p.Last = max(p.Last, o.rec.Offset)
	}
	n.discardLanded(w)
	n.emptied(w)
	n.save(n.d.now(), w)
	n.forget(w)
}

// parkLane parks all that w has queued: due retries first, then the queue. What
// came from parked stays there.
func (n *number) parkLane(now time.Time, w *webhook, why record.ParkReason) {
	var all []*item
	for w.lane() > 0 {
		it, _ := w.next()
		all = append(all, it)
	}
	n.parkAll(now, w, all, why)
}

// parkQueue parks the first attempts of an active webhook; due retries go on.
func (n *number) parkQueue(now time.Time, w *webhook, why record.ParkReason) {
	var all []*item
	for w.queue.len() > 0 {
		it, _ := w.queue.pop()
		all = append(all, it)
	}
	n.parkAll(now, w, all, why)
}

// parkAll parks what was taken out of a lane, in order, in one decision and so in
// one transaction.
func (n *number) parkAll(now time.Time, w *webhook, all []*item, why record.ParkReason) {
	var d decision
	for _, it := range all {
		n.unqueued(it)
		if it.topic == n.d.topo.Parked() {
			n.leaveInParked(w, it)
			continue
		}
		it.DueAt = record.Time{}
		d.records = append(d.records, n.toParked(now, w, it, why))
		d.done = append(d.done, place{it.topic, it.offset})
		if notes := n.note(it.topic); notes != nil {
			d.notes = notes
		}
		it.decided = true
	}
	if len(d.records) == 0 {
		return
	}
	if o := n.config(w.id).OrderingOr(); strictly(o) { // what is in flight was before them, and stays so if its request is cut
		for _, it := range w.flight {
			if w.state.HeadAt(it.Source) == nil {
				n.noteHead(w, it, o)
				w.state.HeadAt(it.Source).Parked = it.topic == n.d.topo.Parked()
			}
		}
	}
	n.out.decide(now, d)
	n.save(now, w)
}

// leaveInParked takes an event that was read back out of memory: it still lies in
// the topic, undone, and is read again in its turn. A pass that runs has gone by its
// place: reading on would take what lies behind it, and it would be lost.
func (n *number) leaveInParked(w *webhook, it *item) {
	w.parked.inPass = false
	w.parked.cursor = min(w.parked.cursor, it.offset)
	w.parked.unload(it.offset)
	n.parked.sweep.leaves(w)
	if d := w.discard; d != nil && it.offset < d.at { // it is looked at once more
		d.at, d.kept = w.parked.cursor, false
	}
}

func (p *parkedPlace) unload(offset int64) {
	if i, ok := slices.BinarySearch(p.loaded, offset); ok {
		p.loaded = slices.Delete(p.loaded, i, i+1)
	}
}

// doneInParked: the parked record of it has been dealt with.
func (n *number) doneInParked(w *webhook, it *item) {
	p := w.state.Parked
	if p == nil {
		return
	}
	w.parked.unload(it.offset)
	p.Count--
	i, _ := slices.BinarySearch(p.Done, it.offset)
	p.Done = slices.Insert(p.Done, i, it.offset)
	p.From = w.parked.cursor
	if len(w.parked.loaded) > 0 {
		p.From = min(p.From, w.parked.loaded[0])
	}
	i, _ = slices.BinarySearch(p.Done, p.From)
	p.Done = slices.Delete(p.Done, 0, i)
	if it.offset < p.From && it.written.After(p.OldestAt.Time) { // all that is left is younger
		p.OldestAt = record.At(it.written)
	}
	n.emptied(w)
}

// emptied ends the return when nothing is left.
func (n *number) emptied(w *webhook) {
	if w.state.Parked != nil && w.state.Parked.Count <= 0 {
		w.state.Parked, w.parked.expiring = nil, false
		n.log.Info("nothing parked any more", "webhook", w.id)
		n.headsGone(w)
	}
}

// readParked begins a pass over the range in which returning webhooks have events.
// A webhook whose lane is full drops out of the pass, and joins a later one at its
// own place.
func (n *number) readParked(now time.Time) {
	n.giveBack(now)
	if n.parked.running || now.Before(n.parked.notBefore) || n.crowded() || n.out.full(now, n.d.cfg.MaxUncommitted) != "" {
		return
	}
	from := int64(-1)
	for w := range n.parked.active {
		if w.stopped() || w.parkedCount() == 0 {
			delete(n.parked.active, w)
			continue
		}
		if !n.returning(w) {
			continue
		}
		w.parked.inPass = true
		if at := w.parked.place(); from < 0 || at < from {
			from = at
		}
	}
	if len(n.parked.active) == 0 {
		n.parked.kept = kafka.Batch{}
	}
	if from < 0 {
		return
	}
	n.parked.running, n.parked.found = true, false
	kept := n.parked.kept
	n.parked.kept = kafka.Batch{}
	if len(kept.Records) == 0 || from < kept.Records[0].Offset || from >= kept.Next {
		kept = kafka.Batch{}
	}
	n.running.Go(func() { n.pass(from, kept) })
}

// pass reads in a goroutine of its own, batch by batch, as fast as the number takes them.
func (n *number) pass(from int64, kept kafka.Batch) {
	defer n.inbox.post(n.passEnded)
	reader := kafka.NewReader(n.d.plain, n.d.topo.Parked(), n.p, max(from, kept.Next))
	for at := from; n.ctx.Err() == nil; {
		batch := kept
		kept = kafka.Batch{}
		if len(batch.Records) == 0 {
			var err error
			if batch, err = reader.Next(n.ctx, 0, passBytes); err != nil {
				if n.ctx.Err() == nil {
					n.log.Warn("reading parked events failed, trying again", "error", err)
				}
				return
			}
		}
		more := make(chan bool, 1)
		n.inbox.post(func() { more <- n.passBatch(batch) })
		select {
		case <-n.ctx.Done():
			return
		case on := <-more:
			if !on || batch.Next >= batch.LastStable || batch.Next == at {
				return
			}
			at = batch.Next
		}
	}
}

// passBatch takes what belongs to returning webhooks; false: nobody wants more.
func (n *number) passBatch(b kafka.Batch) bool {
	now := n.d.now()
	if b.Reset {
		n.log.Error("parked events are gone before they were read: retention has taken them", "log_start", b.LogStart)
	}
	// A pass does not outrun what the number was told of its own commits: an event
	// that is dealt with before it counts as landed would be taken for a new one then
	// (the answer to the end of its transaction can be late by seconds).
	next := min(b.Next, n.parked.end)
	for _, r := range b.Records {
		if r.Offset >= next {
			break
		}
		w := n.webhooks[string(r.Key)]
		if w == nil || !w.parked.inPass || r.Offset < w.parked.place() {
			continue
		}
		if n.hasEnough(now, w, r.Offset) {
			w.parked.inPass = false
			continue
		}
		w.parked.pass(r.Offset + 1)
		if !w.waitsAt(r.Offset) {
			continue
		}
		if w.parked.seeking && !n.sought(w, r) {
			continue
		}
		n.parked.found = true
		n.returned(now, w, r)
	}
	more := false
	for w := range n.parked.active {
		if w.parked.inPass {
			w.parked.pass(next)
			more = true
		}
	}
	if !more {
		n.parked.kept = b
	}
	return more && next == b.Next && !n.draining
}

// returned brings one parked record back into its lane.
func (n *number) returned(now time.Time, w *webhook, r *kgo.Record) {
	it, err := n.parkedItem(r)
	i, _ := slices.BinarySearch(w.parked.loaded, r.Offset)
	w.parked.loaded = slices.Insert(w.parked.loaded, i, r.Offset)
	n.guard(it, func() {
		if err != nil {
			n.die(now, it, record.InvalidRecord, problem(err))
			return
		}
		n.arrive(now, it)
	})
}

func (n *number) passEnded() {
	n.parked.running = false
	if !n.parked.found {
		n.parked.kept = kafka.Batch{}
		n.parked.notBefore = n.d.now().Add(passRest)
		n.due.Push(n.parked.notBefore, 0, waiting{})
	}
	for w := range n.parked.active {
		if !w.parked.inPass {
			continue
		}
		w.parked.inPass = false
		if w.parked.seeking {
			n.soughtAll(w)
			continue
		}
		n.lookedThrough(n.d.now(), w)
	}
}

// lookedThrough: what was committed has been looked at up to the webhook's place. When
// that is all, what is still counted is gone.
func (n *number) lookedThrough(now time.Time, w *webhook) {
	if p := w.state.Parked; p != nil && w.parked.unacked == 0 && w.parked.cursor >= n.parked.end && p.Count != int64(len(w.parked.loaded)) {
		n.log.Error("parked events are missing, retention may have taken them", "webhook", w.id, "missing", p.Count-int64(len(w.parked.loaded)))
		p.Count = int64(len(w.parked.loaded))
		n.emptied(w)
		n.save(now, w)
	}
}
