package dispatcher

import (
	"fmt"
	"time"
)

// stuckAfter is when a number's goroutine that has not turned counts as stuck. It
// turns each 10 s at least, whatever Kafka or the endpoints do.
const stuckAfter = time.Minute

// Live gives the reasons to restart the process; none when it is well. Waiting for
// Kafka is no such reason: a restart would not help.
func (d *Dispatcher) Live() (reasons []string) {
	d.ownership.each(func(n *number) {
		if !n.started.Load() {
			return
		}
		if silent := time.Since(n.born) - time.Duration(n.turnAt.Load()); silent > stuckAfter {
			reasons = append(reasons, fmt.Sprintf("number %d has not turned for %s", n.p, silent.Round(time.Second)))
		}
	})
	return reasons
}

// Ready gives the reasons why the dispatcher can't deliver now; none when it can.
func (d *Dispatcher) Ready() (reasons []string) {
	now := time.Now()
	member, generation, joined := d.membership()
	silent := !joined || !d.lease.holds(member, now)
	if err := d.dials.trouble(now); silent && err != nil {
		reasons = append(reasons, fmt.Sprintf("a Kafka broker can't be reached: %v", err))
	}
	if !joined {
		return append(reasons, "not a member of the group yet")
	}
	if silent {
		reasons = append(reasons, fmt.Sprintf("the group has not acknowledged this member (generation %d) for %s", generation, leaseTime))
	}
	if why := d.cycle.trouble(); why != "" {
		reasons = append(reasons, "the last cycle was not committed: "+why)
	}
	d.ownership.each(func(n *number) {
		if !n.started.Load() {
			reasons = append(reasons, fmt.Sprintf("number %d is starting", n.p))
		} else if why := n.out.full(d.now(), d.cfg.MaxUncommitted); why != "" {
			reasons = append(reasons, fmt.Sprintf("number %d: %s", n.p, why))
		}
	})
	if webhooks, ids := d.foreignKeys(); webhooks > 0 {
		reasons = append(reasons, fmt.Sprintf("%s (webhooks: %d, keys: %v)", foreignKeysText, webhooks, ids))
	}
	return reasons
}

func (d *Dispatcher) membership() (member string, generation int32, ok bool) {
	if !d.joined.Load() {
		return "", -1, false
	}
	member, generation = d.group.GroupMetadata()
	return member, generation, member != "" && generation >= 0
}
