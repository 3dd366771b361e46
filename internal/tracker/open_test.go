package tracker

import (
	"testing"

	"pgregory.net/rapid"
)

// What is open is what a tracker that starts from the same commit takes as new work.
func TestOpenIsWhatATrackerWouldTakeAsWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		committed := rapid.Int64Range(0, 1_000).Draw(t, "committed")
		var b setBuilder
		for range rapid.IntRange(0, 8).Draw(t, "stretches") {
			b.add(rapid.Bool().Draw(t, "done"), rapid.Int64Range(1, 20).Draw(t, "length"))
		}
		set := b.set()
		end := committed + rapid.Int64Range(0, 100).Draw(t, "length of the partition")
		open := map[int64]bool{}
		last := int64(-1)
		for from, to := range set.Open(committed, end) {
			if from <= last || to <= from || to > end {
				t.Fatalf("stretch [%d, %d) after %d, the end is %d", from, to, last, end)
			}
			last = to
			for at := from; at < to; at++ {
				open[at] = true
			}
		}
		tr := New(committed, set)
		for at := committed; at < end; at++ {
			if work := tr.Received(at); work != open[at] {
				t.Fatalf("offset %d: open %v, work %v", at, open[at], work)
			}
		}
	})
}

func TestOpenStopsWhenItIsTold(t *testing.T) {
	set := Set{runs: []int64{1, 1, 1, 1}}
	for from, to := range set.Open(10, 20) {
		if from != 10 || to != 11 {
			t.Errorf("got [%d, %d)", from, to)
		}
		break
	}
}
