package tracker

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBitset compares the set with a map, and looks at how it is laid out after each step.
func TestBitset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := newRand(rapid.Uint64().Draw(t, "seed"))
		gap := rapid.SampledFrom([]int64{1, 100, 600, 5000}).Draw(t, "gap")
		var b bitset
		model := map[int64]bool{}
		var all []int64
		next := int64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rnd.IntN(5) < 3 {
				next += 1 + rnd.Int64N(gap)
				b.add(next)
				model[next] = true
				all = append(all, next)
			} else if len(all) > 0 {
				x := all[rnd.IntN(len(all))] + rnd.Int64N(2)
				if b.remove(x) != model[x] {
					t.Fatalf("remove(%d) is not %v", x, model[x])
				}
				delete(model, x)
			}

			var got []int64
			for from, n := range b.runs() {
				for x := from; x < from+n; x++ {
					got = append(got, x)
				}
			}
			want := slices.Sorted(maps.Keys(model))
			if !slices.Equal(got, want) || b.count != len(want) {
				t.Fatalf("%d: %v, want %v", b.count, got, want)
			}
			empty := 0
			for i, c := range b.chunks {
				if c.n == 0 {
					empty++
				}
				if i > 0 && c.id <= b.chunks[i-1].id {
					t.Fatal("chunks are not in order")
				}
			}
			if empty != b.empty || len(b.chunks) > 0 && b.chunks[0].n == 0 || len(b.chunks) > fewChunks && empty > len(b.chunks)/2 {
				t.Fatalf("%d of %d chunks are empty, counted %d, the first has %v", empty, len(b.chunks), b.empty, b.chunks[0].n)
			}
		}
	})
}
