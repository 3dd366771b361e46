package dispatcher

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Bounds of what one number keeps in memory. What is beyond them stays in Kafka:
// fetching pauses, and lanes that are too long are parked, so that a slow webhook
// never holds up the others.
const (
	laneLimit = 1_000 // first attempts queued for one webhook

	lanesRecords = 10_000 // queued in all lanes of a number
	lanesBytes   = 8 << 20
	dueRecords   = 50_000 // waiting in the due queue
	dueBytes     = 16 << 20

	// behindLimit is how far a queued event may lie behind the newest fetched one,
	// in offsets, before its lane is parked: a quarter of the half-done window of
	// 20,000 that the metadata of an offset commit is sure to hold.
	behindLimit = 5_000

	// fetchAhead is how many more offsets a fetch may bring before the next look.
	fetchAhead = 10_000
)

type amount struct {
	records int
	bytes   int
}

func (a *amount) add(bytes int)    { a.records++; a.bytes += bytes }
func (a *amount) remove(bytes int) { a.records--; a.bytes -= bytes }

func (a amount) over(records, bytes int) bool { return a.records > records || a.bytes > bytes }

// flow counts what a number holds, and pauses fetching when that is too much.
type flow struct {
	lanes   amount                // in lanes, whatever their origin
	retries amount                // in the due queue
	waiting map[time.Duration]int // records in the due queue, by tier
	aging   fifo[*item]           // queued events in the order of their offsets

	end  map[string]int64  // high watermarks, as last seen
	held map[string]string // why fetching a topic is paused
}

// waits and leaves count the due queue.
func (f *flow) waits(tier time.Duration, it *item) {
	f.waiting[tier]++
	f.retries.add(it.bytes)
}

func (f *flow) leaves(tier time.Duration, it *item) {
	f.waiting[tier]--
	f.retries.remove(it.bytes)
}

// control pauses and resumes fetching, topic by topic, with hysteresis.
func (n *number) control() {
	if n.flow.lanes.over(lanesRecords, lanesBytes) {
		n.shed(time.Now())
	}
	half := func(held bool, limit int) int {
		if held {
			return limit / 2
		}
		return limit
	}
	for _, topic := range n.d.topics {
		if topic == n.d.topo.Commands() {
			continue // few, and they must come through
		}
		held := n.flow.held[topic] != ""
		why := ""
		switch {
		case topic == n.d.topo.Events() && n.flow.lanes.over(half(held, lanesRecords), half(held, lanesBytes)):
			why = "its lanes are full"
		case topic != n.d.topo.Events() && n.flow.retries.over(half(held, dueRecords), half(held, dueBytes)):
			why = "its due queue is full"
		case !n.out.fits(topic, fetchAhead):
			why = "too much of it is half done"
		case n.blocked != "":
			why = n.blocked
		}
		n.flow.held[topic] = why
		if (why != "") != held {
			n.log.Debug("fetching paused or resumed", "topic", topic, "paused", !held, "reason", why)
			n.d.fetch.hold(n, topic, !held)
		}
	}
}

// shed parks the longest lanes until the others have room.
func (n *number) shed(now time.Time) {
	for n.flow.lanes.over(lanesRecords/2, lanesBytes/2) {
		var longest *webhook
		for _, w := range n.webhooks {
			if w.parkable() && (longest == nil || w.queue.len() > longest.queue.len()) {
				longest = w
			}
		}
		if longest == nil {
			return
		}
		n.parkQueue(now, longest, record.ParkOverflow)
	}
}

// parkable: whether its queue holds events. What came back from parked is bounded
// by how it is read.
func (w *webhook) parkable() bool { return w.queue.len() > 0 && w.parkedCount() == 0 }

// parkBehind parks the lanes whose oldest event holds the partition's offset back
// too far.
func (n *number) parkBehind(now time.Time) {
	newest := n.out.position(n.d.topo.Events())
	for {
		it, ok := n.flow.aging.peek()
		if !ok {
			return
		}
		w := n.webhooks[it.Webhook]
		if w != nil && it.queued && newest-it.offset <= behindLimit {
			return
		}
		n.flow.aging.pop()
		if w != nil && it.queued && w.parkable() {
			n.log.Info("lane parked, it held its partition back", "webhook", w.id, "offset", it.offset)
			n.parkQueue(now, w, record.ParkBehind)
		}
	}
}
