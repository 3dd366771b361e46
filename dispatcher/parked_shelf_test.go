package dispatcher

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// shelf runs the bookkeeping of a number's parked events against the truth: a
// partition, and which of its records have been dealt with.
type shelf struct {
	t        *rapid.T
	d        *Dispatcher
	n        *number
	now      time.Time
	ids      []string
	events   int64                 // offset of the next event
	inFlight map[string][]*item    // by webhook
	log      map[int64]*kgo.Record // the parked partition: what is committed
	end      int64                 // of the partition
	frozen   *part
	landings []*part // committed, the number has not been told
	pos      int64   // of the pass that runs
	swept    int64   // of the sweep that runs

	// What has been dealt with, by the transaction that says so.
	done, doneFrozen, doneDecided map[int64]bool
	states                        map[string]record.State // committed
}

func newShelf(t *rapid.T, d *Dispatcher) *shelf {
	s := &shelf{
		t: t, d: d, now: time.Now(), ids: []string{"a", "b"}, log: map[int64]*kgo.Record{},
		done: map[int64]bool{}, states: map[string]record.State{},
	}
	s.restart()
	return s
}

// restart drops all memory and begins with what was committed.
func (s *shelf) restart() {
	n := newNumber(s.d, 0, 1, "member", nil)
	n.cancel(errReleased) // a pass that is begun reads nothing by itself: the test hands it its batches
	n.out.trackers = map[string]*tracker.Tracker{}
	for _, topic := range s.d.topics {
		n.out.trackers[topic] = tracker.New(0, tracker.Set{})
	}
	n.parked.end = s.end
	for _, id := range s.ids {
		n.endpoints.entries[id] = &endpoint{value: []byte("x"), opened: &opened{config: record.Endpoint{ID: id}}}
		if state, ok := s.states[id]; ok {
			w := n.webhook(id)
			w.state = cloneState(state)
			if w.paused() {
				n.paused++
			}
			if state.Parked != nil {
				w.parked.cursor = state.Parked.From
				n.parked.active[w] = true
			}
		}
	}
	s.n, s.frozen, s.landings = n, nil, nil
	s.inFlight, s.doneFrozen, s.doneDecided = map[string][]*item{}, map[int64]bool{}, map[int64]bool{}
}

func (s *shelf) webhook() *webhook {
	return s.n.webhook(rapid.SampledFrom(s.ids).Draw(s.t, "webhook"))
}

// arrive brings a new event.
func (s *shelf) arrive(id string) {
	s.events++
	it := &item{ticket: &ticket{}, Delivery: &record.Delivery{Event: record.Event{Webhook: id, ID: fmt.Sprint(s.events)}, Key: []byte(id), Source: s.source(s.events)}, topic: s.d.topo.Events(), offset: s.events}
	s.n.out.received(it.topic, it.offset)
	s.n.arrive(s.now, it)
}

func (s *shelf) source(offset int64) record.Source {
	return record.Source{Topic: s.d.topo.Events(), Offset: offset}
}

// start takes the next event of a lane, as a request does. What lies in parked must
// come in its order. Two may be in flight, as orders to come will allow: they end in
// any order.
func (s *shelf) start(w *webhook) bool {
	if len(s.inFlight[w.id]) == 2 || w.paused() {
		return false
	}
	it, ok := w.next()
	if !ok {
		return false
	}
	s.n.unqueued(it)
	if it.topic == s.d.topo.Parked() {
		left := slices.DeleteFunc(s.left(w.id), func(at int64) bool {
			return slices.ContainsFunc(s.inFlight[w.id], func(other *item) bool { return other.topic == it.topic && other.offset == at })
		})
		if len(left) == 0 || left[0] != it.offset {
			s.t.Fatalf("%s: offset %d starts, but %v are left to be dealt with", w.id, it.offset, left)
		}
	}
	w.flight = append(w.flight, it)
	s.inFlight[w.id] = append(s.inFlight[w.id], it)
	return true
}

// finish ends a request: the event is delivered, parked again, or back in its lane.
func (s *shelf) finish(w *webhook, i int, how string) {
	all := s.inFlight[w.id]
	if i >= len(all) || how == "cut" && len(all) > 1 {
		return
	}
	it := all[i]
	s.inFlight[w.id] = slices.Delete(all, i, i+1)
	w.flight = slices.DeleteFunc(w.flight, func(other *item) bool { return other == it })
	switch {
	case how == "cut":
		s.n.backToLane(s.now, w, it)
	case how == "failed" && w.paused():
		s.settled(it)
		s.n.decide(s.now, it, s.n.toParked(s.now, w, it, record.ParkPaused))
		s.n.save(s.now, w)
	default:
		w.parked.quick = true
		s.settled(it)
		s.n.decide(s.now, it)
	}
	s.n.forget(w)
}

func (s *shelf) settled(it *item) {
	if it.topic != s.d.topo.Parked() {
		return
	}
	if s.done[it.offset] || s.doneFrozen[it.offset] || s.doneDecided[it.offset] {
		s.t.Fatalf("%s: offset %d was dealt with twice", it.Webhook, it.offset)
	}
	s.doneDecided[it.offset] = true
}

// freeze, then commit or abort: a transaction.
func (s *shelf) freeze() {
	if s.frozen != nil {
		return
	}
	if s.frozen = s.n.out.freeze(); s.frozen != nil {
		s.doneFrozen, s.doneDecided = s.doneDecided, map[int64]bool{}
	}
}

func (s *shelf) commit() {
	if s.frozen == nil {
		return
	}
	for _, o := range s.frozen.records {
		if o.rec.Topic == s.d.topo.Parked() {
			o.rec.Offset, o.rec.Timestamp = s.end, s.now
			s.log[s.end] = o.rec
			s.end++
		}
	}
	s.end++ // the marker
	maps.Copy(s.done, s.doneFrozen)
	maps.Copy(s.states, s.frozen.states)
	s.n.out.committed()
	s.landings = append(s.landings, s.frozen)
	s.frozen, s.doneFrozen = nil, map[int64]bool{}
	for id, state := range s.states {
		s.agrees("on record", id, state, s.done)
	}
}

func (s *shelf) abort() {
	if s.frozen == nil {
		return
	}
	s.end += int64(len(s.frozen.records)) + 1 // taken by what is never seen
	s.n.out.aborted()
	maps.Copy(s.doneDecided, s.doneFrozen)
	s.frozen, s.doneFrozen = nil, map[int64]bool{}
}

func (s *shelf) land() {
	if len(s.landings) > 0 {
		s.n.landed(s.landings[0])
		s.landings = s.landings[1:]
	}
}

// beginPass lets the number begin a pass, which then reads what the test gives it.
func (s *shelf) beginPass() {
	if s.n.parked.running {
		return
	}
	s.now = s.now.Add(time.Second)
	s.n.readParked(s.now)
	s.n.running.Wait()
	s.n.inbox.take() // the end of the pass, which has read nothing
	s.pos = -1
	for w := range s.n.parked.active {
		if w.parked.inPass && (s.pos < 0 || w.parked.cursor < s.pos) {
			s.pos = w.parked.cursor
		}
	}
}

// readOn hands up to size offsets to the pass, and ends it where a pass ends.
func (s *shelf) readOn(size int64) {
	if !s.n.parked.running {
		return
	}
	b := kafka.Batch{Next: min(s.end, s.pos+size), LastStable: s.end, HighWatermark: s.end}
	for at := s.pos; at < b.Next; at++ {
		if r, ok := s.log[at]; ok {
			b.Records = append(b.Records, r)
		}
	}
	if on := s.n.passBatch(b); !on || b.Next >= b.LastStable || b.Next == s.pos {
		s.n.passEnded()
		return
	}
	s.pos = b.Next
}

// beginSweep lets the number begin a sweep, which then reads what the test gives it.
func (s *shelf) beginSweep(age time.Duration) {
	if s.n.parked.sweep != nil {
		return
	}
	s.dies(age, func() { s.n.sweepParked(s.now, age) })
	s.n.running.Wait()
	if sweep := s.n.parked.sweep; sweep != nil {
		s.swept = sweep.at
	}
}

// sweepOn hands up to size offsets to the sweep.
func (s *shelf) sweepOn(size int64) {
	sweep := s.n.parked.sweep
	if sweep == nil {
		return
	}
	b := kafka.Batch{Next: min(s.end, s.swept+size), LastStable: s.end, HighWatermark: s.end}
	for at := s.swept; at < b.Next; at++ {
		if r, ok := s.log[at]; ok {
			b.Records = append(b.Records, r)
		}
	}
	s.dies(sweep.life, func() { s.n.sweepBatch(sweep, b) })
	s.n.running.Wait()
	s.swept = b.Next
}

// dies checks those that die of age meanwhile: they are old enough, and go in their order.
func (s *shelf) dies(age time.Duration, f func()) {
	before := len(s.n.out.records)
	f()
	for _, o := range s.n.out.records[before:] {
		if o.rec.Topic != s.d.topo.DLQ() {
			continue
		}
		letter, err := record.ParseDeadLetter(o.rec)
		if err != nil || letter.Reason != record.ParkedExpired {
			s.t.Fatalf("%+v, %v", letter, err)
		}
		waiting := slices.DeleteFunc(s.left(letter.Webhook), func(at int64) bool {
			return slices.ContainsFunc(s.inFlight[letter.Webhook], func(it *item) bool { return it.topic == s.d.topo.Parked() && it.offset == at })
		})
		if len(waiting) == 0 {
			s.t.Fatalf("%s dies of age, but nothing of it is left", letter.Source)
		}
		at := waiting[0]
		if d, err := record.FromWaiting(s.log[at]); err != nil || d.Source != letter.Source || s.now.Sub(s.log[at].Timestamp) <= age {
			s.t.Fatalf("%s: %s dies of age, before offset %d of %s (%v)", letter.Webhook, letter.Source, at, s.log[at].Timestamp, err)
		}
		s.doneDecided[at] = true
	}
}

// left are the offsets of a webhook that have not been dealt with, by what was decided so far.
func (s *shelf) left(id string) (left []int64) {
	for at, r := range s.log {
		if string(r.Key) == id && !s.done[at] && !s.doneFrozen[at] && !s.doneDecided[at] {
			left = append(left, at)
		}
	}
	slices.Sort(left)
	return left
}

// agrees compares what a state says with the truth: whoever begins with this state reads all that is left, and nothing else.
func (s *shelf) agrees(where, id string, state record.State, done map[int64]bool) {
	var left, read []int64
	for at, r := range s.log {
		if string(r.Key) != id {
			continue
		}
		if !done[at] {
			left = append(left, at)
		}
		if p := state.Parked; p != nil && at >= p.From && !slices.Contains(p.Done, at) {
			read = append(read, at)
		}
	}
	slices.Sort(left)
	slices.Sort(read)
	if !slices.Equal(left, read) {
		s.t.Fatalf("%s, %s: the state leads to %v, left are %v (%+v)", id, where, read, left, state.Parked)
	}
}

func (s *shelf) check() {
	decided := maps.Clone(s.done)
	maps.Copy(decided, s.doneFrozen)
	maps.Copy(decided, s.doneDecided)
	for _, id := range s.ids {
		w := s.n.webhooks[id]
		if e := s.n.endpoints.entries[id]; w == nil && e.dormant != nil { // looked at, it stays asleep
			w = &webhook{id: id, state: e.dormant.state(id)}
		}
		if w == nil {
			if left := s.left(id); len(left) > 0 {
				s.t.Fatalf("%s is forgotten, left are %v", id, left)
			}
			continue
		}
		s.agrees("in memory", id, w.state, decided)
		if want := int64(len(s.left(id)) + s.unwritten(id)); w.parkedCount() != want {
			s.t.Fatalf("%s: %d are counted as parked, want %d", id, w.parkedCount(), want)
		}
		if p := w.state.Parked; p != nil {
			for _, at := range s.left(id) {
				if s.log[at].Timestamp.Before(p.OldestAt.Time) {
					s.t.Fatalf("%s: offset %d was parked at %s, but the oldest at %s", id, at, s.log[at].Timestamp, p.OldestAt)
				}
			}
			for _, at := range p.Done {
				if at < p.From || !decided[at] {
					s.t.Fatalf("%s: offset %d is among the done from %d on", id, at, p.From)
				}
			}
		}
		if !slices.IsSorted(w.parked.loaded) || len(slices.Compact(slices.Clone(w.parked.loaded))) != len(w.parked.loaded) {
			s.t.Fatalf("%s: in memory are %v", id, w.parked.loaded)
		}
		inMemory := 0
		w.queue.each(func(it *item) {
			if it.topic == s.d.topo.Parked() {
				inMemory++
			}
		})
		for _, it := range s.inFlight[id] {
			if it.topic == s.d.topo.Parked() {
				inMemory++
			}
		}
		if inMemory != len(w.parked.loaded) {
			s.t.Fatalf("%s: %d are in memory, %v are counted", id, inMemory, w.parked.loaded)
		}
	}
}

// unwritten counts the parked records of a webhook that no committed transaction holds.
func (s *shelf) unwritten(id string) (n int) {
	var all []*outgoing
	all = append(all, s.n.out.records...)
	if s.frozen != nil {
		all = append(all, s.frozen.records...)
	}
	for _, o := range all {
		if o.rec.Topic == s.d.topo.Parked() && string(o.rec.Key) == id {
			n++
		}
	}
	return n
}
