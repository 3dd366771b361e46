package dispatcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ownership knows which numbers are in our hands. Each holding of a number is a
// life: a *number with the member id it was assigned under, from assign to revoke
// or loss. Everything that was decided hangs on its life, and a dead life's
// decisions are never committed.
//
// The member id matters as much as the generation. When the coordinator has
// forgotten us, kgo joins again under a new id and goes on; the generation is
// then fresh, and a commit with it would be accepted for a number that somebody
// else owns by now, for Kafka checks the generation, not the ownership. So:
//
//  1. member A owns number 3, decides something, and is expelled;
//  2. B is given 3, and delivers;
//  3. A comes back as A' in a later generation, without number 3;
//  4. A' must not commit what A decided: its life was lived under another id.
//
// One lock covers: checking the lives, taking (member, generation), freezing what
// they decided. The callbacks take the same lock, so a batch is frozen either
// before a number is released, and then waited for, or not at all.
type ownership struct {
	d *Dispatcher

	mu       sync.Mutex
	closed   bool
	serial   uint64
	assigned map[int32]map[string]bool // what kgo has assigned: number, topics
	lives    map[int32]*number
	former   map[int32]<-chan struct{} // closed when the former life's requests have ended
}

func newOwnership(d *Dispatcher) *ownership {
	return &ownership{
		d:        d,
		assigned: map[int32]map[string]bool{},
		lives:    map[int32]*number{},
		former:   map[int32]<-chan struct{}{},
	}
}

// onAssigned is called by kgo at the beginning of each group session, also when
// nothing was added: a session under a new member id begins new lives of all that
// is still assigned.
func (o *ownership) onAssigned(_ context.Context, cl *kgo.Client, added map[string][]int32) {
	member, _ := cl.GroupMetadata()
	o.mu.Lock()
	defer o.mu.Unlock()
	for topic, numbers := range added {
		for _, p := range numbers {
			if o.assigned[p] == nil {
				o.assigned[p] = map[string]bool{}
			}
			o.assigned[p][topic] = true
		}
	}
	if o.closed {
		return
	}
	whole := true
	for _, p := range slices.Sorted(maps.Keys(o.assigned)) {
		if n := o.lives[p]; n != nil {
			if n.member == member {
				continue
			}
			o.loseLocked(n, "the group has given us a new member id")
		}
		// A number starts when all its topics are here.
		if len(o.assigned[p]) < len(o.d.topics) {
			whole = false
			continue
		}
		o.serial++
		n := newNumber(o.d, p, o.serial, member, o.former[p])
		o.lives[p], o.former[p] = n, n.done
		go n.live()
	}
	if !whole {
		// A static member that comes back with more topics (a new tier) gets its old
		// assignment, without a rebalance: ask for one, or the number never starts.
		time.AfterFunc(rejoinAfter, cl.ForceRebalance)
	}
	o.d.beatNow()
}

// rejoinAfter lets a rebalance that is under way bring the missing topics first.
const rejoinAfter = time.Second

// onRevoked gives numbers up in order: nothing new starts, what is in flight
// ends or is cut after the drain timeout, and the last cycle is committed. kgo
// keeps heartbeating meanwhile, and the group waits for us to return.
func (o *ownership) onRevoked(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
	o.release(ctx, o.unassign(lost))
}

// onLost drops everything: somebody else may own it already.
func (o *ownership) onLost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	numbers := o.unassign(lost)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range numbers {
		o.loseLocked(n, "the group has dropped us")
	}
}

// expelled ends the lives of a member that the coordinator no longer knows. kgo hears
// of it too, but may be waiting for onRevoked at that moment, which waits for a commit
// that can't succeed any more.
func (o *ownership) expelled(member string, err error) {
	o.mu.Lock()
	lost := false
	for _, n := range o.lives {
		if n.member == member {
			lost = true
			o.loseLocked(n, "the group has expelled us: "+err.Error())
		}
	}
	o.mu.Unlock()
	if lost { // join again, or what is still assigned never starts
		o.d.group.ForceRebalance()
	}
}

// isExpulsion: whether an answer says that the member id sent is none of the group's
// (UNKNOWN_MEMBER_ID), or no more (FENCED_INSTANCE_ID: the instance has another).
func isExpulsion(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.FencedInstanceID)
}

// unassign forgets assignments and returns the lives they end.
func (o *ownership) unassign(lost map[string][]int32) []*number {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ended []*number
	for topic, numbers := range lost {
		for _, p := range numbers {
			delete(o.assigned[p], topic)
			if len(o.assigned[p]) == 0 {
				delete(o.assigned, p)
			}
			if n := o.lives[p]; n != nil && !slices.Contains(ended, n) {
				ended = append(ended, n)
			}
		}
	}
	return ended
}

// close releases all that is owned and accepts nothing more.
func (o *ownership) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, o.d.cfg.DrainTimeout+stopSettleTime)
	defer cancel()
	o.mu.Lock()
	o.closed = true
	numbers := slices.Collect(maps.Values(o.lives))
	o.mu.Unlock()
	o.release(ctx, numbers)
}

// release ends lives cleanly, side by side. It returns when no open transaction
// holds any of them.
func (o *ownership) release(ctx context.Context, numbers []*number) {
	if len(numbers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.d.cfg.DrainTimeout+settleTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range numbers {
		wg.Go(func() {
			n.drain(ctx)
			o.settle(ctx, n)
		})
	}
	wg.Wait()
}

// settle waits until all that n decided is committed, then ends the life. Only the
// first turn is at once: a cycle that can't commit (nobody knows us, say) would be
// asked for the next without a pause.
func (o *ownership) settle(ctx context.Context, n *number) {
	o.d.cycle.now()
	for {
		turned := o.d.cycle.turned() // before looking, or a turn that ends in between is missed
		if n.out.empty() || ctx.Err() != nil || n.ctx.Err() != nil {
			break
		}
		select {
		case <-turned:
		case <-ctx.Done():
		case <-n.ctx.Done():
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.out.empty() || n.ctx.Err() != nil {
		o.endLocked(n, errReleased)
		return
	}
	o.loseLocked(n, "its last cycle could not be committed in time")
}

var (
	errReleased = errors.New("released")
	errLost     = errors.New("lost")
)

func (o *ownership) loseLocked(n *number, why string) {
	if o.lives[n.p] != n {
		return
	}
	o.d.log.Warn("number lost", "number", n.p, "reason", why, "uncommitted", n.out.len())
	n.cancel(errLost) // first, or what is cut starts again at once
	n.cut(why)
	o.endLocked(n, errLost)
}

func (o *ownership) endLocked(n *number, why error) {
	if o.lives[n.p] == n {
		delete(o.lives, n.p)
	}
	o.d.fetch.remove(n)
	n.cancel(why)
}

// freeze takes, under the lock, all that the lives have decided, and the member
// and generation it is decided under. The pair goes with the commit: a fresh one
// at commit time could belong to an assignment that we don't know yet.
func (o *ownership) freeze(id cycleID) *batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	member, generation, ok := o.d.membership()
	if !ok {
		return nil
	}
	b := &batch{id: id, member: member, generation: generation}
	for _, p := range slices.Sorted(maps.Keys(o.lives)) {
		n := o.lives[p]
		if n.member != member {
			o.loseLocked(n, "the group has given us a new member id")
			continue
		}
		if part := n.out.freeze(); part != nil {
			part.n = n
			b.parts = append(b.parts, part)
		}
	}
	if len(b.parts) == 0 {
		return nil
	}
	return b
}

// each calls f with every life, in the order of the numbers.
func (o *ownership) each(f func(*number)) {
	o.mu.Lock()
	lives := make([]*number, 0, len(o.lives))
	for _, p := range slices.Sorted(maps.Keys(o.lives)) {
		lives = append(lives, o.lives[p])
	}
	o.mu.Unlock()
	for _, n := range lives {
		f(n)
	}
}

func (o *ownership) wakeAll() { o.each(func(n *number) { n.inbox.wake() }) }

// watchLease cancels the requests of lives whose lease has run out.
func (o *ownership) watchLease(now time.Time) {
	o.each(func(n *number) {
		if o.d.lease.expired(n.member, now) {
			n.cut("the lease has run out")
		}
	})
}

// alive: whether n is still a life of ours under the group's current member id.
func (o *ownership) alive(n *number) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	member, _, _ := o.d.membership()
	return o.lives[n.p] == n && n.member == member
}

// wait returns when the requests of all lives have ended.
func (o *ownership) wait() {
	o.mu.Lock()
	former := slices.Collect(maps.Values(o.former))
	o.mu.Unlock()
	for _, done := range former {
		<-done
	}
}
