package dispatcher

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// What is read back from parked waits in lanes, and all of it has a bound. So that no
// webhook keeps the others of its number from returning, one that is slow, or waits for
// a head, holds little, and what stands still is given back when there is no room.

// share is how many of its parked events may be in memory. One is enough where each
// takes long: dozens of dead webhooks must not keep the others from returning. But keys
// that wait for a head must not keep the others of their webhook from being read.
func (n *number) share(w *webhook) int {
	if w.parked.quick || w.state.HeadCount() > 0 && !n.flow.returned.over(lanesRecords/4, lanesBytes/4) {
		return drainLane
	}
	return 1
}

// returning: whether events of w are to be read back now.
func (n *number) returning(w *webhook) bool {
	w.parked.seeking = false
	if w.discard != nil || n.parked.sweep.looksFor(w) { // they read for themselves
		return false
	}
	if w.state.HeadCount() > 0 {
		if w.parked.seeking = n.seeks(w); w.parked.seeking {
			w.parked.seek = w.state.Parked.From
			return true
		}
		if n.config(w.id).OrderingOr() == record.OrderStrict { // nothing else could start
			return false
		}
	}
	return w.parkedCount() > int64(len(w.parked.loaded)) && w.parked.cursor < n.parked.end &&
		len(w.parked.loaded) <= n.share(w)/2 && !w.scattered(w.parked.cursor, w.parked.cursor+1)
}

// hasEnough: whether w leaves the pass that has come to offset. Beyond one that is slow
// it may read on for as long as its state can list what is done beyond that one.
func (n *number) hasEnough(now time.Time, w *webhook, offset int64) bool {
	if w.stopped() || n.flow.returned.over(lanesRecords, lanesBytes) || n.out.full(now, n.d.cfg.MaxUncommitted) != "" {
		return true
	}
	return !w.parked.seeking && (len(w.parked.loaded) >= n.share(w) || w.scattered(offset, offset+1))
}

// crowded: nothing is read back any more, until others are through.
func (n *number) crowded() bool { return n.flow.returned.over(lanesRecords/2, lanesBytes/2) }

// standsStill is how long nothing of a webhook has started when it is slow.
const standsStill = quickAnswer

// giveBack makes room when lanes that stand still hold so much that nobody else can
// return: they were quick when it was read back, and then their endpoints hung; or all
// of it waits for a head. One event of each stays, and its heads.
func (n *number) giveBack(now time.Time) {
	if !n.crowded() || now.Sub(n.parked.gaveBack) < standsStill {
		return
	}
	n.parked.gaveBack = now
	for w := range n.parked.active {
		if now.Sub(w.startedAt) < standsStill {
			continue
		}
		first := true
		back := w.queue.take(func(it *item) bool {
			if it.topic != n.d.topo.Parked() || w.state.HeadAt(it.Source) != nil {
				return false
			}
			stays := first
			first = false
			return !stays
		})
		for _, it := range back {
			n.unqueued(it)
			n.leaveInParked(w, it)
		}
		w.parked.quick = w.parked.quick && len(back) == 0
	}
}
