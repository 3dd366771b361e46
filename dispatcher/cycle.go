package dispatcher

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

type cycleID = tracker.CycleID

// batch is what one cycle commits: the parts of all lives, and the member and
// generation under which they were frozen.
type batch struct {
	id         cycleID
	member     string
	generation int32
	parts      []*part
}

// cycle commits what the numbers have decided, every dispatcher.cycle when there
// is something. A cycle that takes longer is followed at once by the next; while
// nothing is decided, nothing turns.
type cycle struct {
	d *Dispatcher

	mu      sync.Mutex
	n       uint64
	turn    chan struct{} // closed after each turn
	work    chan struct{} // something was decided
	hurry   chan struct{} // somebody waits for it
	failing string        // why the last turn committed nothing; "" when it did
}

func newCycle(d *Dispatcher) *cycle {
	return &cycle{d: d, turn: make(chan struct{}), work: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// now asks for a turn at once.
func (c *cycle) now() { ring(c.hurry) }

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// turned is closed when the turn that runs now, or the next one, has ended.
func (c *cycle) turned() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

func (c *cycle) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var pause time.Duration // after a failure: up to a second, so as not to beat on a cluster in trouble
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.work:
		case <-c.hurry:
			ring(c.hurry)
		}
		hurry := c.hurry
		if pause > 0 {
			hurry = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-hurry:
		}
		began := time.Now()
		switch err := c.once(ctx); {
		case err == nil:
			pause = 0
		case refusedForContent(err) && !c.d.txn.stuck: // and replaced: no reason to wait
			pause = 0
			ring(c.work)
		default:
			pause = min(max(2*pause, c.d.cfg.Cycle), time.Second)
			ring(c.work)
		}
		timer.Reset(max(0, max(c.d.cfg.Cycle, pause)-time.Since(began)))
	}
}

// once commits one batch; the error is why it was not committed.
func (c *cycle) once(ctx context.Context) error {
	defer func() {
		c.mu.Lock()
		close(c.turn)
		c.turn = make(chan struct{})
		c.mu.Unlock()
	}()
	c.n++
	b := c.d.ownership.freeze(cycleID{Instance: c.d.instance, Boot: c.d.boot, N: c.n})
	if b == nil {
		c.setFailing(nil) // what could not be committed is lost, or there was nothing
		return nil
	}
	began := time.Now()
	outcome, err := c.d.txn.commit(ctx, b)
	c.d.metrics.cycle(outcome, time.Since(began))
	level := slog.LevelDebug // the same again
	if c.setFailing(err) {
		level = slog.LevelWarn
	}
	if outcome != outcomeCommitted {
		for _, p := range b.parts {
			p.n.out.aborted()
		}
		if isExpulsion(err) {
			c.d.ownership.expelled(b.member, err)
		}
		if err != nil && ctx.Err() == nil {
			c.d.log.Log(ctx, level, "cycle not committed, its records are written again", "cycle", b.id.String(), "result", string(outcome), "error", err)
		}
		return err
	}
	// The frozen pair was accepted: that is a sign of life, from when the cycle began.
	c.d.renewLease(b.member, began)
	for _, p := range b.parts {
		p.n.out.committed()
		p.n.inbox.post(func() { p.n.landed(p) })
	}
	return nil
}

// setFailing notes why nothing is committed, nil when something was; true: that is new.
func (c *cycle) setFailing(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.failing
	c.failing = ""
	if err != nil {
		c.failing = err.Error()
	}
	return c.failing != before
}

func (c *cycle) trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing
}

// assemble lists the records of the batch in the order in which they are written.
// A batch that only moves offsets gets an empty delivered record: kgo ends no
// transaction in which nothing was produced.
func (b *batch) assemble(d *Dispatcher) []*outgoing {
	var all []*outgoing
	for _, p := range b.parts {
		for _, r := range p.records {
			if !r.leftOut {
				all = append(all, r)
			}
			if r.beside != nil {
				all = append(all, r.beside)
			}
		}
		for ids := range slices.Chunk(p.recent, record.MaxDeliveredIDs) {
			all = append(all, &outgoing{rec: record.DeliveredRecord(d.topo.Delivered(), p.n.p, ids)})
		}
		for id, s := range p.states {
			r := &kgo.Record{Topic: d.topo.State(), Partition: p.n.p, Key: []byte(id)}
			if !s.Healthy() {
				r.Value = s.Marshal()
			}
			all = append(all, &outgoing{rec: r})
		}
		if p.notes != nil {
			all = append(all, &outgoing{rec: &kgo.Record{
				Topic: d.topo.State(), Partition: p.n.p, Key: []byte(record.NumberKey), Value: p.notes.Marshal(),
			}})
		}
	}
	if len(all) == 0 {
		all = append(all, &outgoing{rec: record.DeliveredRecord(d.topo.Delivered(), b.parts[0].n.p, nil)})
	}
	return all
}

// landed runs in the number's goroutine when a part of its has been committed.
func (n *number) landed(p *part) {
	for _, r := range p.records {
		if r.landed != nil {
			r.landed(r)
		}
	}
}
