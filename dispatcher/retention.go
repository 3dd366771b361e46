package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Retention takes what has lain in the parked topic for long, whether its webhook is
// still paused or only slow. So that nothing is lost, an event dies as parked_expired
// before (topology.ParkedLife).
//
// The topic is in the order of time, and one sweep through its front is for all webhooks
// of the number that have events of that age: what it reads does not grow with their
// number. When to look for whom is in the state (oldest_at), which may be too early, and
// is set right by the look. Some die at a time: what has died is committed before the
// next ones do, with the state that says what is left, so a crash repeats none.

// lookEvery is how often a number looks for events that have become too old, and a
// dispatcher for what the topic's retention is: operators change it.
const lookEvery = 10 * time.Minute

// sweep lets the events die that were parked before a time.
type sweep struct {
	before time.Time
	life   time.Duration
	reader *kafka.Reader
	at     int64            // the next offset to look at
	of     map[*webhook]int // whose first event that stays is not found yet, and how many of it have died
}

// watchRetention follows what the topic's configuration says.
func (d *Dispatcher) watchRetention(ctx context.Context) {
	for {
		wait := lookEvery
		life, err := topology.ParkedLife(ctx, kadm.NewClient(d.plain), d.topo)
		switch old := time.Duration(d.parkedLife.Load()); {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = time.Minute
			d.log.Warn("the retention of parked events is not known, trying again", "error", err)
		case life != old:
			d.parkedLife.Store(int64(life))
			after := "never"
			if life < topology.Forever {
				after = topology.TierName(life)
			}
			d.log.Info("the retention of parked events is known", "parked_expired_after", after)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// expireParked looks for events that have become too old, from time to time.
func (n *number) expireParked(now time.Time) {
	life := time.Duration(n.d.parkedLife.Load())
	if life > 0 && n.parked.sweep == nil && !now.Before(n.parked.lookAt) {
		n.parked.lookAt = now.Add(lookEvery)
		n.sweepParked(now, life)
	}
}

// sweepParked begins a sweep when there is something to look for.
func (n *number) sweepParked(now time.Time, life time.Duration) {
	s := &sweep{before: now.Add(-life), life: life, at: n.parked.end, of: map[*webhook]int{}}
	for id, e := range n.endpoints.entries {
		if e.dormant != nil && e.dormant.count > 0 && longTime(e.dormant.oldest).Before(s.before) {
			n.wake(id)
		}
	}
	for _, w := range n.webhooks {
		p := w.state.Parked
		if p == nil || !p.OldestAt.Before(s.before) || w.discard != nil || n.endpoints.deleted(w.id) {
			continue
		}
		s.of[w] = 0
		s.at = min(s.at, w.parked.cursor)
	}
	if len(s.of) == 0 {
		return
	}
	n.parked.sweep = s
	for w := range s.of {
		w.parked.inPass = false
		// What was read back, and still waits for its turn, comes first. What is in flight ends.
		for _, it := range w.queue.take(func(it *item) bool { return it.topic == n.d.topo.Parked() && it.written.Before(s.before) }) {
			n.unqueued(it)
			n.outlived(now, s, w, it)
		}
	}
	s.reader = kafka.NewReader(n.d.plain, n.d.topo.Parked(), n.p, s.at)
	n.readOld(s)
}

// readOld reads the next fetch in a goroutine of its own.
func (n *number) readOld(s *sweep) {
	if n.draining { // the next owner looks for itself
		return
	}
	n.running.Go(func() {
		for ; n.ctx.Err() == nil; n.rest(time.Second) {
			batch, err := s.reader.Next(n.ctx, 0, passBytes)
			if err == nil {
				n.inbox.post(func() { n.sweepBatch(s, batch) })
				return
			}
			n.log.Warn("reading parked events that are to expire failed, trying again", "error", err)
		}
	})
}

// sweepBatch lets those of a fetch die that are too old.
func (n *number) sweepBatch(s *sweep, b kafka.Batch) {
	if n.draining {
		return
	}
	now := n.d.now()
	next := min(b.Next, n.parked.end) // as a pass: not beyond what is known to have landed
	var last *outgoing
	died, bytes := 0, 0
	for i, r := range b.Records {
		if r.Offset >= next {
			break
		}
		if last != nil && (died >= discardRecords || bytes >= discardBytes) {
			s.reaches(r.Offset)
			b.Records = b.Records[i:]
			last.landed = func(*outgoing) { n.sweepBatch(s, b) }
			return
		}
		w := n.webhooks[string(r.Key)]
		if !s.looksFor(w) || !w.waitsInParked(r.Offset) {
			continue
		}
		switch {
		case !r.Timestamp.Before(s.before):
			w.parked.cursor = max(w.parked.cursor, r.Offset)
			n.oldestIs(now, w, r.Timestamp)
			n.swept(s, w)
		case w.scattered(r.Offset, r.Offset+1): // behind a request in flight, which ends
			w.parked.cursor = max(w.parked.cursor, r.Offset)
			n.swept(s, w)
		default:
			w.parked.cursor = r.Offset + 1
			it, _ := n.parkedItem(r) // what is wrong with it does not matter any more
			if told := n.outlived(now, s, w, it); told != nil {
				last = told
			}
			died++
			bytes += it.bytes
		}
	}
	s.reaches(next)
	stands := b.Next == s.at
	s.at = b.Next
	switch {
	case len(s.of) == 0 || next >= n.parked.end || stands:
		for w := range s.of {
			n.lookedThrough(now, w)
			n.swept(s, w)
		}
		n.parked.sweep = nil
	case last != nil:
		last.landed = func(*outgoing) { n.readOld(s) }
	default:
		n.readOld(s)
	}
}

// reaches notes that nothing is left before an offset but what is in memory.
func (s *sweep) reaches(offset int64) {
	for w := range s.of {
		w.parked.cursor = max(w.parked.cursor, offset)
	}
}

// outlived lets one die, and returns what tells of it.
func (n *number) outlived(now time.Time, s *sweep, w *webhook, it *item) (told *outgoing) {
	s.of[w]++
	n.guard(it, func() {
		reason := record.ParkedExpired
		message := fmt.Sprintf("parked since %s: the topic may take it when it has lain there for longer than %s", record.At(it.written), topology.TierName(s.life))
		if it.expired(now) {
			reason, message = record.Expired, it.expiryText()
		}
		records := n.deathRecords(now, it, reason, message)
		n.decide(now, it, records...)
		told = records[0]
	})
	return told
}

// oldestIs notes when the first of those that stay was parked.
func (n *number) oldestIs(now time.Time, w *webhook, at time.Time) {
	if len(w.parked.loaded) > 0 { // one that is in flight may be older
		return
	}
	w.state.Parked.OldestAt = record.At(at)
	n.save(now, w)
}

// swept takes a webhook out of the sweep.
func (n *number) swept(s *sweep, w *webhook) {
	died := s.of[w]
	delete(s.of, w)
	if died > 0 && !w.parked.expiring {
		w.parked.expiring = true
		n.log.Warn("parked events have become too old and die, before retention takes them", "webhook", w.id, "died", died, "parked", w.parkedCount(), "after", topology.TierName(s.life))
	}
	n.forget(w)
}

// looksFor: whether the sweep is to find the first event of w that stays. Meanwhile
// nothing of w is read back, so that none dies before an older one.
func (s *sweep) looksFor(w *webhook) bool {
	if s == nil {
		return false
	}
	_, looks := s.of[w]
	return looks
}

// leaves takes a webhook out of a sweep, if there is one, that would pass over what it
// has just got, or that something else deals with.
func (s *sweep) leaves(w *webhook) {
	if s != nil {
		delete(s.of, w)
	}
}
