package dispatcher

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// inventory is what the numbers hold, counted when somebody asks.
type inventory struct {
	inFlight, lanes, paused int
	bytes, parked, backlog  int64
	oldest, uncommitted     time.Duration
	waiting, overdue        map[time.Duration]int // by tier
	stopped                 map[string]int        // topics that are not taken in, by reason
}

func newInventory() inventory {
	return inventory{waiting: map[time.Duration]int{}, overdue: map[time.Duration]int{}, stopped: map[string]int{
		boundUncommitted: 0, boundHalfDone: 0, boundLanes: 0, boundDue: 0, boundWaiting: 0,
	}}
}

// inventory asks every number, each in its own goroutine's time. A number that
// does not answer within a second is left out; the watchdog speaks of it.
func (d *Dispatcher) inventory() (sum inventory, owned int) {
	sum = newInventory()
	for _, tier := range d.topo.Tiers() { // zero is worth knowing too
		sum.waiting[tier], sum.overdue[tier] = 0, 0
	}
	ends := d.eventEnds()
	answers := make(chan inventory, d.topo.Partitions())
	asked := 0
	d.ownership.each(func(n *number) {
		owned++
		if n.started.Load() {
			asked++
			n.inbox.post(func() { answers <- n.inventory(n.d.now(), ends) })
		}
	})
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	for range asked {
		select {
		case a := <-answers:
			sum.add(a)
		case <-patience.C:
			return sum, owned
		}
	}
	return sum, owned
}

// eventEnds are the ends of the events topic now: what a paused fetch has seen last
// stands still just when it matters.
func (d *Dispatcher) eventEnds() map[int32]int64 {
	ends := map[int32]int64{}
	if !d.joined.Load() {
		return ends
	}
	ctx, cancel := context.WithTimeout(d.ctx, time.Second)
	defer cancel()
	listed, err := kadm.NewClient(d.plain).ListEndOffsets(ctx, d.topo.Events())
	if err != nil {
		d.log.Debug("the end of the events is not known", "error", err)
		return ends
	}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends
}

func (i *inventory) add(a inventory) {
	i.inFlight += a.inFlight
	i.lanes += a.lanes
	i.paused += a.paused
	i.bytes += a.bytes
	i.parked += a.parked
	i.backlog += a.backlog
	i.oldest = max(i.oldest, a.oldest)
	i.uncommitted = max(i.uncommitted, a.uncommitted)
	for tier, n := range a.waiting {
		i.waiting[tier] += n
	}
	for tier, n := range a.overdue {
		i.overdue[tier] += n
	}
	for why, n := range a.stopped {
		i.stopped[why] += n
	}
}

func (n *number) inventory(now time.Time, ends map[int32]int64) inventory {
	i := newInventory()
	i.inFlight = int(n.inFlight.Load())
	i.paused = n.paused
	i.uncommitted = n.out.age(now)
	i.parked = n.dormants.parked
	i.bytes = int64(n.flow.lanes.bytes + n.flow.returned.bytes + n.flow.retries.bytes)
	for tier, waiting := range n.flow.waiting {
		i.waiting[tier] = waiting.records
		i.bytes += int64(waiting.bytes)
	}
	for _, s := range n.streams {
		if s.told != "" {
			i.stopped[s.told]++
		}
	}
	events := n.d.topo.Events()
	i.backlog = max(0, ends[n.p]-max(n.streams[events].looked, n.out.position(events))) // not yet looked at; counts markers too
	for _, w := range n.webhooks {
		i.parked += w.parkedCount()
		if w.lane() > 0 {
			i.lanes++
		}
		if !w.stopped() { // what waits for a person is no work for more dispatchers
			i.backlog += int64(w.queue.len()-len(w.parked.loaded)) + w.parkedCount()
		}
		if len(w.flight) > 0 {
			i.oldest = max(i.oldest, now.Sub(w.sending.Time))
		}
		w.retries.each(func(it *item) {
			if tier, ok := n.d.topo.TierOf(it.topic); ok {
				i.overdue[tier]++
			}
			i.oldest = max(i.oldest, now.Sub(it.ProducedAt.Time))
		})
		if it, ok := w.queue.peek(); ok {
			i.oldest = max(i.oldest, now.Sub(it.ProducedAt.Time))
		}
	}
	if i.backlog = max(0, i.backlog); n.heldAll() != nil {
		i.backlog = 0
	}
	return i
}
