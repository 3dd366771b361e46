package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A dispatcher that died inside a transaction leaves it open until it times out,
// after 30 s; until then its offsets can't be read, and the states below stay
// hidden. Who takes its numbers over need not wait: when the instance that
// committed last is no member of the group any more, its transactional id is
// taken from it, which aborts what it left open (KIP-98). It took 12 s of silence
// in all instead of 31 s.

// watchPredecessor looks after takeoverAfter, and again, until stopped.
func (n *number) watchPredecessor() (stop func()) {
	ctx, cancel := context.WithCancel(n.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(takeoverAfter)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := n.fencePredecessor(ctx); err != nil && ctx.Err() == nil {
				n.log.Warn("looking for a dead predecessor failed, trying again", "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// fencePredecessor aborts the transactions of instances that have left their
// cycle's id in the offsets of this number and are no members any more.
func (n *number) fencePredecessor(ctx context.Context) error {
	committed, err := n.d.fetchOffsets(ctx, n.p, false)
	if err != nil {
		return err
	}
	before := map[string]bool{}
	for _, c := range committed {
		if c.cycle.Instance != "" && c.cycle.Instance != n.d.instance {
			before[c.cycle.Instance] = true
		}
	}
	if len(before) == 0 {
		return nil
	}
	groups, err := kadm.NewClient(n.d.plain).DescribeGroups(ctx, n.d.cfg.Group)
	if err != nil {
		return fmt.Errorf("describing the group %q: %w", n.d.cfg.Group, err)
	}
	group := groups[n.d.cfg.Group]
	if group.Err != nil {
		return fmt.Errorf("describing the group %q: %w", n.d.cfg.Group, group.Err)
	}
	for _, m := range group.Members {
		if m.InstanceID != nil {
			delete(before, *m.InstanceID)
		}
	}
	for instance := range before {
		n.log.Warn("taking over from a dispatcher that is gone", "instance", instance)
		if err := n.d.fence(ctx, instance); err != nil {
			return err
		}
	}
	return nil
}

// fence takes an instance's transactional id, and leaves it to whoever comes next.
func (d *Dispatcher) fence(ctx context.Context, instance string) error {
	id := transactionalID(d.cfg.Group, instance)
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = &id
		req.TransactionTimeoutMillis = int32(transactionTimeout.Milliseconds())
		resp, err := req.RequestWith(ctx, d.plain)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, kerr.ConcurrentTransactions): // it is being aborted
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			return fmt.Errorf("fencing the transactional id %q: %w", id, err)
		}
	}
}
