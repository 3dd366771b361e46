package tracker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCommittable(t *testing.T) {
	tr := New(-1, Set{})
	if s := tr.Snapshot(); s.Offset != -1 || tr.Position() != -1 || tr.Changed() {
		t.Fatalf("nothing received, no commit: %+v, position %d", s, tr.Position())
	}
	tr = New(5, Set{})
	if s := tr.Snapshot(); s.Offset != 5 || tr.Changed() {
		t.Fatalf("nothing received: %+v, want the committed offset", s)
	}

	// 6 to 8 are markers: never received.
	tr.Received(5)
	tr.Received(9)
	if s := tr.Snapshot(); tr.Changed() || len(s.Done.runs) != 0 {
		t.Fatalf("nothing completed, yet there is something to commit: %+v", s)
	}
	tr.Complete(9)
	if s := tr.Snapshot(); s.Offset != 5 || !tr.Changed() {
		t.Fatalf("9 complete: offset %d, want 5", s.Offset)
	}
	tr.Complete(5)
	if s := tr.Snapshot(); s.Offset != 10 || len(s.Done.runs) != 0 {
		t.Fatalf("all complete: %+v, want 10 and nothing beyond", s)
	}

	tr = New(5, Set{})
	tr.Received(5)
	tr.Received(9)
	tr.Complete(5)
	if s := tr.Snapshot(); s.Offset != 9 || len(s.Done.runs) != 0 {
		t.Fatalf("5 complete: %+v, want 9 and nothing beyond", s)
	}
}

func TestReceivedTwice(t *testing.T) {
	tr := New(0, Set{})
	if !tr.Received(3) || tr.Received(3) || tr.Received(2) {
		t.Fatal("an offset is new work once, and not behind a later one")
	}
	tr.Complete(2) // never received: no record
	if tr.Incomplete() != 1 || tr.Offset() != 3 {
		t.Fatalf("%d incomplete from %d, want 1 from 3", tr.Incomplete(), tr.Offset())
	}
}

func TestChangedUntilCommitted(t *testing.T) {
	tr := New(0, Set{})
	tr.Received(0)
	tr.Received(1)
	tr.Complete(0)
	first := tr.Snapshot()
	tr.Complete(1)
	tr.Committed(first)
	if !tr.Changed() {
		t.Fatal("what was completed after the snapshot is not committed yet")
	}
	tr.Committed(tr.Snapshot())
	tr.Committed(first) // late
	if tr.Changed() {
		t.Fatal("all is committed")
	}
}

// Records that were complete at the commit move the offset as they are met again.
func TestMeetingWhatIsComplete(t *testing.T) {
	tr := New(10, Set{runs: []int64{0, 3, 1, 5}}) // 13 is a hole, up to 18 complete
	if tr.Received(10) || tr.Received(11) || !tr.Changed() {
		t.Fatal("10 and 11 are complete")
	}
	check := func(offset int64, runs ...int64) {
		t.Helper()
		if s := tr.Snapshot(); s.Offset != offset || !slices.Equal(s.Done.runs, runs) {
			t.Fatalf("%+v, want offset %d and %v", s, offset, runs)
		}
	}
	check(12, 0, 1, 1, 5)
	tr.Received(13)
	check(13, 1, 5)
	tr.Received(14)
	tr.Received(16) // 15 has no record
	check(13, 1, 5)
	tr.Complete(13)
	check(17, 0, 2)
	tr.Received(25)
	check(25)
}

// A commit that speaks of a hole which retention has taken meanwhile must not hold the partition for ever.
func TestHoleThatIsGone(t *testing.T) {
	tr := New(10, Set{runs: []int64{1, 4, 1, 4}}) // 10 and 15 incomplete, up to 19 complete
	tr.Received(30)
	tr.Complete(30)
	if s := tr.Snapshot(); s.Offset != 31 || len(s.Done.runs) != 0 {
		t.Fatalf("%+v, want 31", s)
	}
}

// A head that waits for long costs no memory for what passes it.
func TestMemoryBehindAnOldHead(t *testing.T) {
	tr := New(0, Set{})
	tr.Received(0)
	for x := range int64(1_000_000) {
		tr.Received(x + 1)
		if x >= 2000 {
			tr.Complete(x - 2000 + 1)
		}
	}
	if n := len(tr.open.chunks); n > 40 {
		t.Fatalf("%d chunks for 2,001 offsets in hand", n)
	}
}

// partition is a model of a topic-partition: which offsets have a record, and which records are complete.
type partition struct {
	records  []int64
	complete map[int64]bool
	next     int // index of the next record to fetch
}

// TestRestarts plays random lives of a partition. At each restart, from any snapshot of the life before, exactly what
// was complete at the snapshot is skipped, and all else comes again.
func TestRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 4), rapid.Int64Range(1, 2000), rapid.Int64Range(1, 1<<40))
		rnd := newRand(rapid.Uint64().Draw(t, "seed"))
		p := partition{complete: map[int64]bool{}}
		at := rapid.Int64Range(-1, 1000).Draw(t, "before first")
		for range rapid.IntRange(1, 300).Draw(t, "records") {
			at += gap.Draw(t, "gap")
			p.records = append(p.records, at)
		}
		first := rapid.SampledFrom([]int64{-1, p.records[0]}).Draw(t, "first commit")

		type saved struct {
			metadata string
			offset   int64
			complete map[int64]bool
		}
		life := func(s saved) []saved {
			_, set, err := Decode(s.metadata)
			if err != nil {
				t.Fatal(err)
			}
			tr := New(s.offset, set)
			p.complete = map[int64]bool{}
			for x := range s.complete {
				p.complete[x] = true
			}
			p.next = 0
			for s.offset >= 0 && p.next < len(p.records) && p.records[p.next] < s.offset {
				if !p.complete[p.records[p.next]] {
					t.Fatalf("committed %d, but %d is not complete", s.offset, p.records[p.next])
				}
				p.next++
			}
			snaps := []saved{s}
			var inHand []int64
			for range rapid.IntRange(20, 500).Draw(t, "steps") {
				switch []string{"receive", "receive", "receive", "complete", "complete", "snapshot"}[rnd.IntN(6)] {
				case "receive":
					if p.next == len(p.records) {
						continue
					}
					x := p.records[p.next]
					if !tr.Fits(1, x) {
						continue
					}
					p.next++
					if got := tr.Received(x); got == p.complete[x] {
						t.Fatalf("Received(%d) = %v, complete %v", x, got, p.complete[x])
					} else if got {
						inHand = append(inHand, x)
					}
				case "complete":
					if len(inHand) == 0 {
						continue
					}
					i := rnd.IntN(len(inHand))
					tr.Complete(inHand[i])
					p.complete[inHand[i]] = true
					inHand = append(inHand[:i], inHand[i+1:]...)
				case "snapshot":
					snap := tr.Snapshot()
					want := s.offset // naively
					for i := p.next - 1; i >= 0; i-- {
						if x := p.records[i]; x >= s.offset && (i == p.next-1 || !p.complete[x]) {
							want = x
							if p.complete[x] {
								want++
							}
						}
					}
					if snap.Offset != want || tr.Offset() != want || tr.Incomplete() != len(inHand) {
						t.Fatalf("offset %d, incomplete %d, want %d and %d", snap.Offset, tr.Incomplete(), want, len(inHand))
					}
					metadata, err := Encode(CycleID{"host-1", "b", 7}, snap.Done)
					if err != nil {
						t.Fatal(err)
					}
					kept := map[int64]bool{}
					for x := range p.complete {
						kept[x] = true
					}
					snaps = append(snaps, saved{metadata, snap.Offset, kept})
				}
			}
			return snaps
		}
		state := saved{offset: first}
		for range 5 {
			snaps := life(state)
			state = snaps[rnd.IntN(len(snaps))]
		}
	})
}

// TestFits: while Fits is asked, no order of completions makes a set that can't be committed, whatever was left from
// before; and with nothing in hand one more record can always be received.
func TestFits(t *testing.T) {
	for name, c := range map[string]struct {
		hold float64 // of the records received
		left int     // of a hundred held, how many stay when the others complete
	}{"all held": {1, 0}, "half": {0.5, 2}, "few": {0.05, 0}, "heads stay": {0.7, 1}, "many stay": {1, 5}} {
		for _, gap := range []int64{1, 3, 40, 200, 300, 5000, 1 << 30} {
			rnd := newRand(uint64(gap))
			tr := New(0, Set{})
			var inHand []int64
			var at int64
			fill := func() {
				for {
					at += 1 + rnd.Int64N(gap)
					if !tr.Fits(1, at) {
						return
					}
					tr.Received(at)
					if rnd.Float64() < c.hold {
						inHand = append(inHand, at)
					} else {
						tr.Complete(at)
					}
				}
			}
			for range 4 {
				fill()
				snap := tr.Snapshot()
				_, set, err := Decode(mustEncode(t, widest, snap.Done))
				if err != nil {
					t.Fatal(err)
				}
				tr = New(snap.Offset, set) // a restart: all in hand comes again
				slices.Sort(inHand)
				for _, x := range inHand {
					if !tr.Fits(1, x) || !tr.Received(x) {
						t.Fatalf("%s, gaps to %d: %d can't be received again", name, gap, x)
					}
				}
				rnd.Shuffle(len(inHand), func(i, j int) { inHand[i], inHand[j] = inHand[j], inHand[i] })
				stay := len(inHand) * c.left / 100
				for i, x := range inHand[stay:] {
					tr.Complete(x)
					if i%(len(inHand)/16+1) == 0 {
						mustEncode(t, widest, tr.Snapshot().Done)
					}
				}
				inHand = inHand[:stay]
				if stay == 0 && !tr.Fits(1, at+1<<40) {
					t.Errorf("%s, gaps to %d: nothing in hand, and one record does not fit", name, gap)
				}
			}
		}
	}
}

func TestFitsNumbers(t *testing.T) {
	// in hand: n old records, evenly spread over a distance; the one after that was the newest and is complete.
	after := func(n int, distance int64) *Tracker {
		tr := New(0, Set{})
		for i := range int64(n) {
			tr.Received(i * (distance / int64(n)))
		}
		tr.Received(distance - 1)
		tr.Complete(distance - 1)
		return tr
	}
	inHand := func(offset int64) *Tracker {
		tr := New(0, Set{})
		tr.Received(offset)
		return tr
	}
	for name, c := range map[string]struct {
		tr   *Tracker
		n    int
		last int64
		want bool
	}{
		"a stretch":                {New(100, Set{}), 23_592, 100 + 23_591, true},
		"a longer one":             {New(100, Set{}), 23_593, 100 + 23_592, false},
		"a stretch in hand":        {inHand(300), 23_591, 300 + 23_591, true},
		"far apart":                {New(0, Set{}), 1468, 200_000 - 1, true},
		"too many far apart":       {New(0, Set{}), 1469, 200_000 - 1, false},
		"behind one old":           {after(1, 1e12), 23_500, 1e12 + 23_500 - 1, true},
		"behind 500 old":           {after(500, 200_000), 15_000, 200_000 + 15_000 - 1, true},
		"too much behind 500 old":  {after(500, 200_000), 16_000, 200_000 + 16_000 - 1, false},
		"behind 1000 old":          {after(1000, 200_000), 7000, 200_000 + 7000 - 1, true},
		"too much behind 1000 old": {after(1000, 200_000), 8000, 200_000 + 8000 - 1, false},
	} {
		if got := c.tr.Fits(c.n, c.last); got != c.want {
			t.Errorf("%s: Fits(%d, %d) = %v", name, c.n, c.last, got)
		}
	}
}

// A strict head waits for long while others go by, each taking its time: nothing stops.
func TestFitsBehindAnOldHead(t *testing.T) {
	const slowest, batch = 15_000, 1000
	rnd := newRand(1)
	tr := New(0, Set{})
	tr.Received(0)
	finish := map[int64][]int64{}
	for x := int64(1); x < 100_000; x++ {
		if x%batch == 1 && !tr.Fits(batch, x+batch-1) {
			t.Fatalf("stopped at %d, %d in hand", x, tr.Incomplete())
		}
		tr.Received(x)
		at := x + rnd.Int64N(slowest)
		finish[at] = append(finish[at], x)
		for _, y := range finish[x] {
			tr.Complete(y)
		}
		delete(finish, x)
		if x%5000 == 0 {
			mustEncode(t, widest, tr.Snapshot().Done)
		}
	}
}

// A start from a commit full of holes must be able to receive them again, in one batch too, and nothing beyond.
func TestFitsAfterRestart(t *testing.T) {
	const distance = 137
	tr := New(0, Set{})
	last := int64(0)
	for ; tr.Fits(3, last+distance); last += distance {
		tr.Received(last)
	}
	tr.Received(last)
	tr.Complete(last)
	snap := tr.Snapshot()
	again := New(snap.Offset, snap.Done)
	if !again.Fits(tr.Incomplete(), last-distance) {
		t.Fatal("the holes can't be received in one batch")
	}
	for x := snap.Offset; x < last; x += distance {
		if !again.Fits(1, x) || !again.Fits(1, last+1) || again.Fits(5, last+5) {
			t.Fatalf("at %d of %d: the hole can be received, and one record beyond, not five", x, last)
		}
		if !again.Received(x) {
			t.Fatalf("%d was not complete", x)
		}
	}
	if tr.Incomplete() != again.Incomplete() {
		t.Fatalf("%d incomplete, %d before", again.Incomplete(), tr.Incomplete())
	}
}

// The holes of a commit that lie next to each other count while they are ahead, and when they are in hand, but not twice.
func TestFitsWithinOneHole(t *testing.T) {
	tr := New(0, Set{runs: []int64{1400, 200_000}})
	for x := range int64(1400) {
		if !tr.Fits(1, x) || !tr.Received(x) {
			t.Fatalf("%d can't be received", x)
		}
	}
}

// After a restart an old head is met first, and then a stretch far away of which half is done.
func TestFitsAfterRestartFarFromTheHead(t *testing.T) {
	runs := []int64{1, 200_000}
	for range 10_000 {
		runs = append(runs, 1, 1)
	}
	_, set, err := Decode(mustEncode(t, widest, Set{runs: runs}))
	if err != nil {
		t.Fatal(err)
	}
	tr := New(0, set)
	tr.Received(0)
	for x := int64(1); x < 220_001; x++ {
		if !tr.Fits(1000, x+999) && x+999 < 220_001 || !tr.Fits(1, x) {
			t.Fatalf("stopped at %d", x)
		}
		tr.Received(x)
	}

	// Retention has taken them all meanwhile.
	if tr := New(0, set); !tr.Fits(1, 1e9) || !tr.Received(1e9) || tr.Offset() != 1e9 {
		t.Fatal("the first record beyond can't be received")
	}
}

func BenchmarkReceivedComplete(b *testing.B) {
	tr := New(0, Set{})
	for x := range int64(b.N) {
		tr.Received(x)
		if x >= 5000 {
			tr.Complete((x - 5000) ^ 1)
		}
	}
}

func BenchmarkCompleteFarApart(b *testing.B) {
	tr := New(0, Set{})
	for x := range int64(b.N) {
		tr.Received(x * 600)
		if x >= 1000 && x%2 == 0 {
			tr.Complete((x - x%1000) * 600)
			tr.Complete((x - 999) * 600)
		}
		if tr.Incomplete() > 5000 {
			tr.Complete(tr.Offset())
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	tr := New(0, Set{})
	for x := range int64(20_000) {
		tr.Received(x)
	}
	for x := int64(1); x < 20_000; x += 2 {
		tr.Complete(x)
	}
	for b.Loop() {
		if _, err := Encode(CycleID{}, tr.Snapshot().Done); err != nil {
			b.Fatal(err)
		}
	}
}
