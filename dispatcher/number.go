package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// number is one life of a partition number in our hands. Its goroutine owns all
// of its state below the line; everybody else posts to its inbox, and shares the
// outbox with it.
type number struct {
	d      *Dispatcher
	p      int32
	member string // the member id it was assigned under
	log    *slog.Logger

	ctx    context.Context // ends with the life
	cancel context.CancelCauseFunc
	former <-chan struct{} // closed when the requests of the former life here have ended
	done   chan struct{}   // closed when the goroutine and its requests have ended

	inbox   inbox
	out     outbox
	started atomic.Bool
	born    time.Time
	turnAt  atomic.Int64 // of the last turn, in ns since it was born: the wall clock would lie to the watchdog
	serial  uint64

	cutMu       sync.Mutex
	requests    context.Context // ends when what is in flight must end
	cutRequests context.CancelFunc
	streams     map[string]*stream
	inFlight    atomic.Int32
	foreign     foreignKeys

	// Owned by the goroutine.
	draining  bool
	drained   chan struct{} // closed when draining and nothing is in flight
	running   sync.WaitGroup
	sequence  uint64
	webhooks  map[string]*webhook
	ready     [ranks]fifo[*webhook] // lanes that may have something to start
	endpoints endpoints
	due       retrytiers.Queue[waiting]
	parked    parkedReader
	notes     record.NumberState
	commands  map[string]*commandLine // by webhook: what waits or runs
	tests     []order                 // that wait for their start
	flying    map[*item]bool          // events in flight
	flow      flow
	recent    *recent   // delivered ids
	paused    int       // webhooks that are paused
	dormants  dormants  // of them
	dozeAt    time.Time // when to look for more
	freeAt    time.Time // when everything was released last
	blocked   string
	silent    silence
}

// item is one event on its way, in the hands of its number.
type item struct {
	*record.Delivery
	topic     string // where the record lies: events, a retry topic, or parked
	offset    int64
	bytes     int
	sequence  uint64 // order of receipt
	*ticket          // its place in a lane
	decided   bool   // where it goes is settled
	delivered bool
	hash      string    // of its ordering key, once it is needed
	due       time.Time // monotonic, of a retry; zero otherwise
	written   time.Time // the timestamp of the record
	able      time.Time // of a retry that has started: when it could at the earliest
	skip      *order    // in flight: it dies when its request ends, unless that delivers it
}

// ticket is what is remembered of an item's place when the item itself must not be
// kept: one old event would keep the thousands alive that were delivered since.
type ticket struct {
	webhook string
	place   int64
	queued  bool
}

// waiting is a record in the due queue: it leaves its topic at its time, to its
// lane or (hop) to the next delay topic. Without an item it wakes a lane.
type waiting struct {
	item *item
	tier time.Duration
	hop  bool
	due  time.Time
	wake *webhook
}

func newNumber(d *Dispatcher, p int32, serial uint64, member string, former <-chan struct{}) *number {
	n := &number{
		d: d, p: p, serial: serial, member: member, former: former,
		log:     d.log.With("number", p),
		born:    time.Now(),
		done:    make(chan struct{}),
		drained: make(chan struct{}),
		inbox:   newInbox(),
	}
	n.ctx, n.cancel = context.WithCancelCause(d.ctx)
	n.requests, n.cutRequests = context.WithCancel(context.WithoutCancel(d.ctx))
	n.out.carrier, n.out.bell = d.topo.Commands(), d.cycle.work
	n.streams = map[string]*stream{}
	for _, topic := range d.topics {
		n.streams[topic] = &stream{topic: topic}
	}
	n.reset()
	return n
}

// live runs the life: restore, then turns, until it ends.
func (n *number) live() {
	defer func() {
		n.d.fetch.remove(n)
		n.d.slots.leave(n)
		n.d.hosts.leave(n)
		n.cut("the number is not ours any more")
		n.running.Wait()
		if n.former != nil {
			<-n.former // whoever comes next waits for all that were before
		}
		close(n.done)
	}()
	if n.former != nil {
		// A webhook whose request of an earlier life still runs must not get a
		// second one beside it.
		select {
		case <-n.former:
		case <-n.ctx.Done():
			return
		}
	}
	began := time.Now()
	for {
		err := n.restore()
		if err == nil {
			break
		}
		switch {
		case n.ctx.Err() != nil:
			return
		case errors.Is(err, errExpired):
			n.d.fail(err)
			return
		}
		n.log.Warn("starting a number failed, trying again", "error", err)
		n.rest(time.Second)
	}
	n.started.Store(true)
	n.log.Info("number started", "after_ms", time.Since(began).Milliseconds(), "webhooks_with_state", len(n.webhooks)+n.dormants.webhooks)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.inbox.bell:
		case <-timer.C:
		}
		n.turnAt.Store(int64(time.Since(n.born)))
		for _, message := range n.inbox.take() {
			n.step(message)
		}
		var wait time.Duration
		n.step(func() { wait = n.turn(n.d.now()) })
		timer.Reset(wait)
	}
}

// step runs f so that the cycle sees all of what it decides, or nothing.
func (n *number) step(f func()) {
	n.out.step.Lock()
	defer n.out.step.Unlock()
	f()
}

// idleTurn is how long a number without work sleeps: it turns all the same, so that
// a stuck one can be told from an idle one.
const idleTurn = 10 * time.Second

// turn does what has become possible, and tells when to look again at the latest.
func (n *number) turn(now time.Time) time.Duration {
	if n.draining {
		n.d.slots.leave(n)
		n.d.hosts.leave(n)
		n.checkDrained()
		return idleTurn
	}
	n.blocked = n.whyBlocked(now)
	n.noteSilence(now)
	n.leaveDue(now)
	n.startTests(now)
	n.startReady(now) // first what is here: it makes room
	n.takeIn(now)
	n.startReady(now)
	n.readParked(now)
	n.expireParked(now)
	n.fallAsleep(now)
	wait := idleTurn
	if due, _, ok := n.due.Peek(); ok {
		wait = min(wait, max(0, due.Sub(now)))
	}
	if !n.flow.full.IsZero() { // nothing else may wake us while they stand still
		wait = min(wait, shedSlowAfter)
	}
	if n.crowded() {
		wait = min(wait, standsStill)
	}
	if !n.silent.since.IsZero() && !n.silent.told {
		wait = min(wait, silentLong)
	}
	return wait
}

// leaveDue moves what is due out of the due queue.
func (n *number) leaveDue(now time.Time) {
	for {
		at, w, ok := n.due.Peek()
		if !ok || at.After(now) {
			return
		}
		n.due.Pop()
		switch {
		case w.wake != nil:
			n.wakes(now, w.wake)
		case w.item == nil:
			// The turn itself is what was waited for.
		case w.hop:
			n.flow.leaves(w.tier, w.item)
			n.hop(now, w)
		default:
			n.flow.leaves(w.tier, w.item)
			w.item.due = at
			n.guard(w.item, func() { n.arrive(now, w.item) })
		}
	}
}

// takeWaiting takes those that match out of the due queue.
func (n *number) takeWaiting(match func(*item) bool) (items []*item) {
	for _, w := range n.due.Take(func(w waiting) bool { return w.item != nil && match(w.item) }) {
		n.flow.leaves(w.tier, w.item)
		items = append(items, w.item)
	}
	return items
}

// drain stops starting, and waits until nothing is in flight; what runs longer
// than the drain timeout is cut, and will be repeated by the next owner.
func (n *number) drain(ctx context.Context) {
	n.d.fetch.remove(n)
	if !n.started.Load() {
		n.cancel(errReleased) // nothing was begun, nothing is to be ended
		return
	}
	n.inbox.post(func() { n.draining = true })
	cut := time.NewTimer(n.d.cfg.DrainTimeout)
	defer cut.Stop()
	for {
		select {
		case <-n.drained:
			return
		case <-cut.C:
			n.cut("the drain timeout has passed")
		case <-n.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (n *number) checkDrained() {
	if n.inFlight.Load() > 0 {
		return
	}
	select {
	case <-n.drained:
	default:
		close(n.drained)
	}
}

// cut cancels the requests in flight; requests that start later are not affected.
func (n *number) cut(why string) {
	n.cutMu.Lock()
	defer n.cutMu.Unlock()
	if running := n.inFlight.Load(); running > 0 {
		n.log.Warn("requests cut", "reason", why, "in_flight", running)
	}
	n.cutRequests()
	n.requests, n.cutRequests = context.WithCancel(context.WithoutCancel(n.d.ctx))
}

func (n *number) requestContext() context.Context {
	n.cutMu.Lock()
	defer n.cutMu.Unlock()
	return n.requests
}

// whyBlocked is why nothing may be sent or taken in now; "" when it may. What ends
// it (a heartbeat, a commit) wakes the number.
func (n *number) whyBlocked(now time.Time) string {
	switch {
	case n.ctx.Err() != nil:
		return "the number is not ours any more"
	case !n.d.lease.holds(n.member, time.Now()):
		return "the group has not acknowledged us for " + leaseTime.String()
	}
	if h := n.heldAll(); h != nil {
		return "everything is held by hand" + since(h)
	}
	return n.out.full(now, n.d.cfg.MaxUncommitted)
}

// rest waits in a goroutine of the life.
func (n *number) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.ctx.Done():
	}
}
