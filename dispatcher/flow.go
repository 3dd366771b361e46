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

	// Queued in all lanes of a number. Below behindLimit, so that a backlog that is
	// spread evenly pauses fetching, and is not parked for being long.
	lanesRecords = 3_000
	lanesBytes   = 8 << 20

	// Of each delay topic, waiting in the due queue; and as many again are due, and in
	// lanes. A bound of its own for each tier: what waits for an hour must not keep out
	// what is due in two seconds.
	dueRecords = 25_000
	dueBytes   = 8 << 20

	// How long full lanes may keep a number from fetching, while the events of the
	// others wait in Kafka behind them: then the longest lanes that wait for a slow
	// answer are parked, and after a while the longest whatever they wait for. (A
	// backlog of quick webhooks is only slow because all of it is there at once.)
	shedSlowAfter = time.Second
	shedAnyAfter  = 5 * time.Second
	slowAnswer    = 100 * time.Millisecond

	// behindLimit is how far a queued event may lie behind the newest fetched one,
	// in offsets, before its lane is parked: a quarter of the half-done window of
	// 20,000 that the metadata of an offset commit is sure to hold.
	behindLimit = 5_000

	// aheadLimit is how many fetched records of a topic may wait to be looked at. A
	// fetch brings thousands at once when they are small and compressed well.
	aheadLimit = 2_000
	aheadBytes = 4 << 20
	// takeChunk is how many are taken between two looks at the bounds.
	takeChunk = 256
)

type amount struct {
	records int
	bytes   int
}

func (a *amount) add(bytes int)    { a.records++; a.bytes += bytes }
func (a *amount) remove(bytes int) { a.records--; a.bytes -= bytes }

func (a amount) over(records, bytes int) bool { return a.records > records || a.bytes > bytes }

// flow counts what a number holds. Each kind has a bound of its own: what a dead
// webhook has due, or was read back for it from parked, must not keep the events of
// the others out.
type flow struct {
	lanes    amount                    // first attempts in lanes
	returned amount                    // in lanes, read back from parked
	retries  amount                    // in lanes, due
	waiting  map[time.Duration]*amount // in the due queue, by tier
	aging    fifo[*ticket]             // queued events in the order of their offsets
	full     time.Time                 // since when lanes have been full
	fullDue  time.Time                 // since when due retries have been too many
	lookedAt time.Time                 // when due retries were last looked at
}

func (n *number) newFlow() flow {
	f := flow{waiting: map[time.Duration]*amount{}}
	for _, topic := range n.d.topics {
		if tier, ok := n.d.topo.TierOf(topic); ok {
			f.waiting[tier] = &amount{}
		}
	}
	return f
}

// queued and unqueued count an event that comes into a lane, or leaves it.
func (n *number) queued(it *item) {
	it.queued = true
	n.kind(it).add(it.bytes)
}

func (n *number) unqueued(it *item) {
	it.queued = false
	n.kind(it).remove(it.bytes)
}

func (n *number) kind(it *item) *amount {
	switch {
	case it.retry():
		return &n.flow.retries
	case it.topic == n.d.topo.Parked():
		return &n.flow.returned
	}
	return &n.flow.lanes
}

// waits and leaves count the due queue.
func (f *flow) waits(tier time.Duration, it *item) {
	f.waiting[tier].add(it.bytes)
}

func (f *flow) leaves(tier time.Duration, it *item) {
	f.waiting[tier].remove(it.bytes)
}

// lower is a limit for what has reached it already: it must fall by a sixth.
func lower(reached bool, limit int) int {
	if reached {
		return limit - limit/6
	}
	return limit
}

// shed parks the longest lanes when they have been full for too long.
func (n *number) shed(now time.Time) {
	full := !n.flow.full.IsZero()
	if !n.flow.lanes.over(lower(full, lanesRecords), lower(full, lanesBytes)) {
		n.flow.full = time.Time{}
		return
	}
	if !full {
		n.flow.full = now
	}
	fullFor := now.Sub(n.flow.full)
	if fullFor < shedSlowAfter {
		return
	}
	for n.flow.lanes.over(lower(true, lanesRecords), lower(true, lanesBytes)) {
		var longest *webhook
		for _, w := range n.webhooks {
			if w.parkable() && (fullFor >= shedAnyAfter || n.slow(now, w)) && (longest == nil || w.queue.len() > longest.queue.len()) {
				longest = w
			}
		}
		if longest == nil {
			return
		}
		n.log.Info("lane parked, lanes were full", "webhook", longest.id, "queued", longest.queue.len(), "full_for", fullFor.Round(time.Millisecond).String())
		n.parkQueue(now, longest, record.ParkOverflow)
	}
}

// parkSlowRetries parks lanes whose due retries keep a delay topic from moving on:
// they lie too far behind its newest record, or there are too many of them all
// together, most of them in lanes that stand still.
func (n *number) parkSlowRetries(now time.Time) {
	full := !n.flow.fullDue.IsZero()
	switch over := n.flow.retries.over(lower(full, dueRecords), lower(full, dueBytes)); {
	case !over:
		n.flow.fullDue = time.Time{}
	case !full:
		n.flow.fullDue = now
	}
	if now.Sub(n.flow.lookedAt) < time.Second { // it goes through all lanes
		return
	}
	n.flow.lookedAt = now
	newest := map[string]int64{} // of the topics that are held back
	for _, topic := range n.d.topics {
		if _, ok := n.d.topo.TierOf(topic); !ok {
			continue
		}
		if lowest, next := n.out.span(topic); next-lowest > behindLimit {
			newest[topic] = next
		}
	}
	if len(newest) > 0 {
		for _, w := range n.webhooks {
			behind := false
			w.retries.each(func(it *item) {
				next, held := newest[it.topic]
				behind = behind || held && next-it.offset > behindLimit
			})
			if behind {
				n.parkDue(now, w)
			}
		}
	}
	if n.flow.fullDue.IsZero() || now.Sub(n.flow.fullDue) < shedSlowAfter {
		return
	}
	for n.flow.retries.over(lower(true, dueRecords), lower(true, dueBytes)) {
		var longest *webhook
		for _, w := range n.webhooks {
			if n.slow(now, w) && w.retries.len() > 0 && (longest == nil || w.retries.len() > longest.retries.len()) {
				longest = w
			}
		}
		if longest == nil {
			return
		}
		n.parkDue(now, longest)
	}
}

func (n *number) parkDue(now time.Time, w *webhook) {
	n.log.Info("lane parked, its due retries held a delay topic back", "webhook", w.id, "due", w.retries.len())
	n.parkLane(now, w, record.ParkBehind)
}

// slow: whether its lane stands still for longer than a quick answer takes, or its host
// is full.
func (n *number) slow(now time.Time, w *webhook) bool {
	return len(w.flight) > 0 && now.Sub(w.startedAt) >= slowAnswer || now.Before(w.notBefore) || n.d.hosts.waits(n, w.id)
}

// parkable: whether its queue holds events. What came back from parked is bounded
// by how it is read.
func (w *webhook) parkable() bool { return w.queue.len() > 0 && w.parkedCount() == 0 }

// parkBehind parks the lanes whose oldest event holds the partition's offset back
// too far.
func (n *number) parkBehind(now time.Time) {
	newest := n.out.position(n.d.topo.Events())
	for {
		t, ok := n.flow.aging.peek()
		if !ok || t.queued && newest-t.place <= behindLimit {
			return
		}
		n.flow.aging.pop()
		if w := n.webhooks[t.webhook]; t.queued && w != nil && w.parkable() {
			n.log.Info("lane parked, it held its partition back", "webhook", w.id, "offset", t.place)
			n.parkQueue(now, w, record.ParkBehind)
		}
	}
}
