package dispatcher

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

func testOutbox() *outbox {
	b := &outbox{
		states:   map[string]record.State{},
		trackers: map[string]*tracker.Tracker{"events": tracker.New(0, tracker.Set{}), "commands": tracker.New(0, tracker.Set{})},
		carrier:  "commands",
	}
	for i := range int64(10) {
		b.received("events", i)
	}
	return b
}

// value is a record to be told by its value.
func value(s string) *outgoing { return &outgoing{rec: &kgo.Record{Value: []byte(s)}} }

func values(records []*outgoing) (all []string) {
	for _, r := range records {
		all = append(all, string(r.rec.Value))
	}
	return all
}

func state(version int64) map[string]record.State {
	return map[string]record.State{"w": {Webhook: "w", Version: version}}
}

// What one step of a number decides is frozen whole or not at all, however often the cycle looks in between.
func TestStepIsNotSplit(t *testing.T) {
	const steps = 5000
	n := &number{out: outbox{
		states:   map[string]record.State{},
		trackers: map[string]*tracker.Tracker{"commands": tracker.New(0, tracker.Set{})}, carrier: "commands",
	}}
	go func() {
		for range steps {
			n.step(func() {
				n.out.decide(time.Now(), decision{records: []*outgoing{value("retry")}})
				runtime.Gosched() // the cycle looks
				n.out.decide(time.Now(), decision{records: []*outgoing{value("state")}})
			})
		}
	}()
	for whole := 0; whole < steps; {
		p := n.out.freeze()
		if p == nil {
			runtime.Gosched()
			continue
		}
		n.out.committed()
		got := values(p.records)
		for pair := range slices.Chunk(got, 2) {
			if !slices.Equal(pair, []string{"retry", "state"}) {
				t.Fatalf("a batch holds half a step: %d records, %v", len(got), pair)
			}
			whole++
		}
	}
}

// An aborted part goes back before what was decided since: its records in their
// order, its states where no newer one is there, its offsets with whatever has completed meanwhile.
func TestAbortedPartGoesBack(t *testing.T) {
	b := testOutbox()
	start := time.Now()
	b.decide(start, decision{records: []*outgoing{value("1"), value("2")}, done: []place{{"events", 0}}, states: state(1), notes: &record.NumberState{Topics: []string{"old"}}})
	b.decide(start, decision{states: map[string]record.State{"other": {Webhook: "other", Version: 7}}})
	first := b.freeze()
	if first == nil || first.offsets["events"].Offset != 1 {
		t.Fatalf("frozen: %+v", first)
	}
	b.decide(start.Add(time.Second), decision{records: []*outgoing{value("3")}, done: []place{{"events", 1}}, states: state(2)})
	if b.empty() {
		t.Error("it calls itself empty with a part frozen")
	}
	b.aborted()
	second := b.freeze()
	if got := values(second.records); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("records %v are written again, want 1 2 3", got)
	}
	if v := second.states["w"].Version; v != 2 {
		t.Errorf("state version %d is written, want the latest, 2", v)
	}
	if v := second.states["other"].Version; v != 7 {
		t.Errorf("the other state has version %d: it was lost", v)
	}
	if second.offsets["events"].Offset != 2 || second.notes == nil || second.bytes != first.bytes+record.Size(value("3").rec) || !second.since.Equal(start) {
		t.Errorf("frozen again: offset %d, notes %v, %d bytes, since %s after the start",
			second.offsets["events"].Offset, second.notes, second.bytes, second.since.Sub(start))
	}
	b.committed()
	if !b.empty() || b.freeze() != nil || b.len() != 0 {
		t.Error("it is not empty after all was committed")
	}
}

// Newer notes are not overwritten by those of an aborted part.
func TestAbortedNotes(t *testing.T) {
	b := testOutbox()
	b.decide(time.Now(), decision{notes: &record.NumberState{Topics: []string{"a"}}})
	b.freeze()
	b.decide(time.Now(), decision{notes: &record.NumberState{Topics: []string{"a", "b"}}})
	b.aborted()
	if p := b.freeze(); len(p.notes.Topics) != 2 {
		t.Errorf("notes %v are written, want the latest", p.notes.Topics)
	}
}

// Only the latest state of a webhook is written, once.
func TestLatestStateWins(t *testing.T) {
	b := testOutbox()
	for v := range int64(5) {
		b.decide(time.Now(), decision{states: state(v)})
	}
	if p := b.freeze(); len(p.states) != 1 || p.states["w"].Version != 4 {
		t.Errorf("states %v are written", p.states)
	}
}

// The carrier's offset goes with every part, so that a cycle whose answer was lost
// can be found by what it committed.
func TestCarrierGoesAlong(t *testing.T) {
	b := testOutbox()
	b.decide(time.Now(), decision{done: []place{{"events", 0}}})
	p := b.freeze()
	if _, ok := p.offsets["commands"]; !ok || len(p.offsets) != 2 {
		t.Errorf("offsets of %v are committed, want events and commands", p.offsets)
	}
}

// A part that was committed is not committed again; what completed meanwhile is.
func TestOffsetsMoveOn(t *testing.T) {
	b := testOutbox()
	b.decide(time.Now(), decision{done: []place{{"events", 0}}})
	b.freeze()
	b.decide(time.Now(), decision{done: []place{{"events", 1}, {"events", 3}}})
	b.committed()
	p := b.freeze()
	if p == nil || p.offsets["events"].Offset != 2 {
		t.Fatalf("frozen: %+v", p)
	}
	restored := tracker.New(2, p.offsets["events"].Done)
	if restored.Received(3) || !restored.Received(4) {
		t.Error("the set of what is done beyond the offset is wrong")
	}
}

func TestFull(t *testing.T) {
	const limit = 2 * time.Second
	start := time.Now()
	for name, c := range map[string]struct {
		fill func(b *outbox)
		at   time.Duration
		want string // part of the reason; empty: it is not full
	}{
		"nothing decided":   {func(*outbox) {}, time.Hour, ""},
		"young":             {func(b *outbox) { b.decide(start, decision{records: []*outgoing{value("x")}}) }, limit - 1, ""},
		"old":               {func(b *outbox) { b.decide(start, decision{records: []*outgoing{value("x")}}) }, limit, "could not be committed for 2s"},
		"an old state":      {func(b *outbox) { b.decide(start, decision{states: state(1)}) }, limit, "could not be committed"},
		"only an offset":    {func(b *outbox) { b.decide(start, decision{done: []place{{"events", 0}}}) }, time.Hour, ""},
		"old and frozen":    {func(b *outbox) { b.decide(start, decision{records: []*outgoing{value("x")}}); b.freeze() }, limit, "could not be committed"},
		"old, then aborted": {func(b *outbox) { b.decide(start, decision{records: []*outgoing{value("x")}}); b.freeze(); b.aborted() }, limit, "could not be committed"},
		"a newer one does not make it younger": {func(b *outbox) {
			b.decide(start, decision{records: []*outgoing{value("x")}})
			b.freeze()
			b.decide(start.Add(limit), decision{records: []*outgoing{value("y")}})
		}, limit, "could not be committed"},
		"committed": {func(b *outbox) {
			b.decide(start, decision{records: []*outgoing{value("x")}})
			b.freeze()
			b.committed()
		}, time.Hour, ""},
		"many records": {func(b *outbox) {
			for range maxUncommittedRecords {
				b.decide(start, decision{records: []*outgoing{value("")}})
			}
		}, 0, "too many"},
		"one record less": {func(b *outbox) {
			for range maxUncommittedRecords - 1 {
				b.decide(start, decision{records: []*outgoing{value("")}})
			}
		}, 0, ""},
		"many records, half of them frozen": {func(b *outbox) {
			for i := range maxUncommittedRecords {
				if i == maxUncommittedRecords/2 {
					b.freeze()
				}
				b.decide(start, decision{records: []*outgoing{value("")}})
			}
		}, 0, "too many"},
		"many bytes": {func(b *outbox) {
			b.decide(start, decision{records: []*outgoing{value(strings.Repeat("x", maxUncommittedBytes))}})
		}, 0, "too many"},
		"many bytes, frozen": {func(b *outbox) {
			b.decide(start, decision{records: []*outgoing{value(strings.Repeat("x", maxUncommittedBytes))}})
			b.freeze()
		}, 0, "too many"},
	} {
		b := testOutbox()
		c.fill(b)
		got := b.full(start.Add(c.at), limit)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: full because %q, want %q", name, got, c.want)
		}
	}
}
