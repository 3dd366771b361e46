package dispatcher

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lease tells whether this member may still send. The group coordinator replaces
// a member that it has not heard of for the session timeout; a stopped or cut-off
// process does not notice. So no request starts unless the coordinator has
// acknowledged us within half that time, and requests in flight are cancelled
// when all of it has passed: the old owner is silent before the new one speaks.
//
// A sign of life counts from when it was sent, since the coordinator's clock may
// have started there. kgo's own heartbeats can't carry the lease: its hooks don't
// show the response code, and a heartbeat that was answered "unknown member" is
// a sign of death.
type lease struct {
	mu     sync.Mutex
	member string
	sent   time.Time
}

// renew notes that the group acknowledged a request of member, sent at sent; true:
// the lease had run out, and is back. An answer that comes late, to a former
// member id or not, takes nothing away.
func (l *lease) renew(member string, sent, now time.Time) (regained bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.After(l.sent) {
		return false
	}
	regained = member != l.member || elapsed(l.sent, now) >= leaseTime
	l.member, l.sent = member, sent
	return regained
}

// age is how long ago the last acknowledged sign of life of member was sent.
func (l *lease) age(member string, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.member == "" || l.member != member {
		return 0, false
	}
	return elapsed(l.sent, now), true
}

// elapsed is how much time may have passed: the monotonic clock stands still while a
// machine is suspended, and the other one may be set back. The longer of both is safe.
func elapsed(from, now time.Time) time.Duration {
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0)))
}

// holds: whether member may start a request.
func (l *lease) holds(member string, now time.Time) bool {
	age, ok := l.age(member, now)
	return ok && age < leaseTime
}

// expired: whether what member has in flight must end.
func (l *lease) expired(member string, now time.Time) bool {
	age, ok := l.age(member, now)
	return !ok || age >= sessionTimeout
}

// left is how long it is until what is in flight must end, or after that until it
// is time to look again.
func (l *lease) left(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.sent.Add(sessionTimeout).Sub(now); l.member != "" && left > 0 {
		return left
	}
	return time.Second
}

// keepLease sends a heartbeat each second, and at once when asked. One does not wait
// for the answer to the other: over a slow link each may take seconds, and still the
// lease is never older than one of them and a second.
func (d *Dispatcher) keepLease(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var flying sync.WaitGroup
	defer flying.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.heartbeatNow:
		}
		flying.Go(func() { d.heartbeat(ctx) })
	}
}

// watchLease cancels what is in flight at the very moment when the lease has run
// out: a successor may begin right then.
func (d *Dispatcher) watchLease(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.lease.left(time.Now())):
			d.ownership.watchLease(time.Now())
		}
	}
}

// renewLease lets what waited for the lease go on.
func (d *Dispatcher) renewLease(member string, sent time.Time) {
	if d.lease.renew(member, sent, time.Now()) {
		d.ownership.wakeAll()
	}
}

func (d *Dispatcher) heartbeat(ctx context.Context) {
	member, generation := d.group.GroupMetadata()
	if member == "" || generation < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout) // after that it would renew nothing
	defer cancel()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = d.cfg.Group
	req.Generation = generation
	req.MemberID = member
	req.InstanceID = new(d.instance)
	sent := time.Now()
	resp, err := req.RequestWith(ctx, d.group)
	if err != nil {
		d.log.Debug("heartbeat failed", "error", err)
		return
	}
	switch err := kerr.ErrorForCode(resp.ErrorCode); {
	case err == nil, errors.Is(err, kerr.RebalanceInProgress):
		d.renewLease(member, sent)
	case isExpulsion(err):
		// FENCED_INSTANCE_ID is no proof of a twin here: when kgo joins again, the
		// coordinator knows the new member id before we do. kgo's own heartbeats stand
		// still meanwhile, so what they meet is one (see groupErrors).
		d.ownership.expelled(member, err)
	default:
		d.log.Debug("heartbeat refused", "error", err)
	}
}
