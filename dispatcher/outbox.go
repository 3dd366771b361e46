package dispatcher

import (
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// Bounds of what a number may have decided and not yet committed. When one is
// hit, no request of the number starts until a transaction has taken it.
const (
	maxUncommittedRecords = 20_000
	maxUncommittedBytes   = 16 << 20
)

// outgoing is a record on its way into the next transaction.
type outgoing struct {
	rec *kgo.Record
	// instead makes the records that are tried, one after the other, when the
	// broker refuses rec for its content (too large). Empty: rec is small by
	// construction; refused all the same, it is left out, unless it is a dead letter.
	instead []func() *kgo.Record
	leftOut bool
	// dies makes the record that tells of the death, when rec is replaced by a dead
	// letter; beside is that record then. Nil: what tells of it was decided with rec.
	dies   func() *kgo.Record
	beside *outgoing
	// landed is called in the number's goroutine once rec is committed.
	landed func(*outgoing)
}

// replace is for a record that the broker has refused. false: there is no other form.
func (o *outgoing) replace() bool {
	if len(o.instead) == 0 {
		return false
	}
	if o.dies != nil {
		o.beside, o.dies = &outgoing{rec: o.dies()}, nil
	}
	o.rec, o.instead = o.instead[0](), o.instead[1:]
	return true
}

// outbox holds what a number has decided until a transaction has committed it,
// and the offsets that go with it. It is the one thing the number's goroutine
// shares with the cycle.
type outbox struct {
	// step is held by the number's goroutine while it takes one step (a message, a
	// turn), and by the cycle while it takes what was decided. A step can decide
	// several times (an outcome, then the streak it leads to), and a batch must not
	// have one without the other: parked records without the state that finds them
	// again would be lost, a dead letter without the end of its record doubled.
	step sync.Mutex

	mu       sync.Mutex
	records  []*outgoing
	states   map[string]record.State // by webhook: only the latest is written
	notes    *record.NumberState
	recent   []record.DeliveredID        // just delivered
	trackers map[string]*tracker.Tracker // by topic
	answered map[string]bool             // topics whose begin a person has named: committed, so that it is asked once
	bytes    int
	since    time.Time // when the oldest outcome in it was decided
	frozen   *part     // what an open transaction holds

	// carrier is a topic whose offset goes with every part, changed or not: the
	// metadata of a committed offset names its cycle, and by that a cycle whose
	// answer was lost is found again.
	carrier string
	bell    chan struct{} // rung when there is something to commit
}

// part is what one number has in one batch.
type part struct {
	n       *number
	records []*outgoing
	states  map[string]record.State
	notes   *record.NumberState
	recent  []record.DeliveredID
	offsets map[string]tracker.Snapshot
	bytes   int
	since   time.Time
}

// place is a record's, on a topic of the number that the group commits offsets of.
type place struct {
	topic  string
	offset int64
}

// decision is what one step of the number's goroutine decides at once.
type decision struct {
	records []*outgoing
	done    []place // the records that it completes
	states  map[string]record.State
	notes   *record.NumberState
	recent  []record.DeliveredID // what it delivers
	sent    bool                 // it is the outcome of a request, on record or not
}

func (b *outbox) decide(now time.Time, d decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range d.records {
		b.bytes += record.Size(r.rec)
	}
	b.records = append(b.records, d.records...)
	maps.Copy(b.states, d.states)
	b.recent = append(b.recent, d.recent...)
	if d.notes != nil {
		b.notes = d.notes
	}
	for _, p := range d.done {
		b.trackers[p.topic].Complete(p.offset)
	}
	ring(b.bell)
	if b.since.IsZero() && (d.sent || len(d.records) > 0 || len(d.states) > 0) {
		b.since = now
	}
}

// received notes a fetched record; false: it is complete already.
func (b *outbox) received(topic string, offset int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trackers[topic].Received(offset)
}

// fits: whether n more records of topic, the last at offset last, can be received,
// and their set is sure to fit the metadata of a commit however they complete.
func (b *outbox) fits(topic string, n int, last int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trackers[topic].Fits(n, last)
}

// position is one after the newest record received of topic.
func (b *outbox) position(topic string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trackers[topic].Position()
}

// span is the lowest offset of topic that is not complete, and one after the newest
// record received.
func (b *outbox) span(topic string) (lowest, next int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trackers[topic].Offset(), b.trackers[topic].Position()
}

// freeze takes all that is decided; nil when there is nothing to commit.
func (b *outbox) freeze() *part {
	b.step.Lock()
	defer b.step.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trackers == nil { // the number is still being restored, and may begin again
		return nil
	}
	offsets := map[string]tracker.Snapshot{}
	for topic, t := range b.trackers {
		if t.Changed() || b.answered[topic] {
			offsets[topic] = t.Snapshot()
		}
	}
	if len(b.records) == 0 && len(b.states) == 0 && b.notes == nil && len(offsets) == 0 {
		return nil
	}
	if _, ok := offsets[b.carrier]; !ok {
		offsets[b.carrier] = b.trackers[b.carrier].Snapshot()
	}
	p := &part{records: b.records, states: b.states, notes: b.notes, recent: b.recent, offsets: offsets, bytes: b.bytes, since: b.since}
	b.records, b.states, b.notes, b.recent, b.bytes, b.since = nil, map[string]record.State{}, nil, nil, 0, time.Time{}
	b.frozen = p
	return p
}

// committed: the frozen part has become true.
func (b *outbox) committed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for topic, s := range b.frozen.offsets {
		b.trackers[topic].Committed(s)
		delete(b.answered, topic)
	}
	b.frozen = nil
}

// aborted puts the frozen part back before what was decided since: its records
// are written again, its requests are not made again.
func (b *outbox) aborted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.frozen
	b.frozen = nil
	b.records = append(p.records, b.records...)
	for id, s := range p.states {
		if _, newer := b.states[id]; !newer {
			b.states[id] = s
		}
	}
	if b.notes == nil {
		b.notes = p.notes
	}
	b.recent = append(p.recent, b.recent...)
	b.bytes += p.bytes
	if !p.since.IsZero() {
		b.since = p.since
	}
}

func (b *outbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen != nil || len(b.records) > 0 || len(b.states) > 0 || b.notes != nil {
		return false
	}
	for _, t := range b.trackers {
		if t.Changed() {
			return false
		}
	}
	return len(b.answered) == 0
}

// len is how many records are not committed yet.
func (b *outbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.records)
	if b.frozen != nil {
		n += len(b.frozen.records)
	}
	return n
}

// age is how long the oldest outcome has waited for its commit.
func (b *outbox) age(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := b.oldest(); !since.IsZero() {
		return now.Sub(since)
	}
	return 0
}

// oldest is when the oldest outcome was decided; zero without one. The caller holds the lock.
func (b *outbox) oldest() time.Time {
	if b.frozen != nil && !b.frozen.since.IsZero() {
		return b.frozen.since
	}
	return b.since
}

// full: whether no more requests may start until something is committed, and why.
func (b *outbox) full(now time.Time, limit time.Duration) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	records, bytes, since := len(b.records), b.bytes, b.oldest()
	if b.frozen != nil {
		records, bytes = records+len(b.frozen.records), bytes+b.frozen.bytes
	}
	switch {
	case !since.IsZero() && now.Sub(since) >= limit:
		return "outcomes could not be committed for " + now.Sub(since).Round(100*time.Millisecond).String()
	case records >= maxUncommittedRecords || bytes >= maxUncommittedBytes:
		return "too many outcomes wait to be committed"
	}
	return ""
}
