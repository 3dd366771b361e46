package retrytiers

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQueue compares the queue with a list that is sorted anew at each step.
func TestQueue(t *testing.T) {
	type item struct {
		due   time.Time
		bytes int
		n     int
	}
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var list []item
		for n := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if divisor := rapid.IntRange(2, 20).Draw(t, "take"); divisor < 4 {
				match := func(n int) bool { return n%divisor == 0 }
				var want []int
				for _, it := range list {
					if match(it.n) {
						want = append(want, it.n)
					}
				}
				list = slices.DeleteFunc(list, func(it item) bool { return match(it.n) })
				if got := q.Take(match); !slices.Equal(got, want) {
					t.Fatalf("took %v, want %v", got, want)
				}
			} else if rapid.IntRange(0, 2).Draw(t, "push") > 0 {
				it := item{
					due:   time.Unix(rapid.Int64Range(0, 20).Draw(t, "due"), 0), // many ties
					bytes: rapid.IntRange(0, 1000).Draw(t, "bytes"),
					n:     n,
				}
				q.Push(it.due, it.bytes, it.n)
				list = append(list, it)
				slices.SortStableFunc(list, func(a, b item) int { return a.due.Compare(b.due) })
			} else {
				due, peeked, peekOK := q.Peek()
				at, bytes, got, ok := q.Pop()
				if !ok || !peekOK {
					if ok != peekOK || len(list) != 0 {
						t.Fatalf("peek %v, pop %v of %d", peekOK, ok, len(list))
					}
					continue
				}
				want := list[0]
				list = list[1:]
				if got != want.n || peeked != got || bytes != want.bytes || !at.Equal(want.due) || !due.Equal(at) {
					t.Fatalf("got item %d due %v, want %d due %v", got, at, want.n, want.due)
				}
			}
			var bytes int64
			for _, it := range list {
				bytes += int64(it.bytes)
			}
			if q.Len() != len(list) || q.Bytes() != bytes {
				t.Fatalf("%d items of %d bytes, want %d of %d", q.Len(), q.Bytes(), len(list), bytes)
			}
		}
	})
}

func TestQueueHoldsNothing(t *testing.T) {
	var q Queue[*int]
	for range 1000 {
		q.Push(time.Time{}, 1, new(int))
	}
	for range 999 {
		q.Pop()
	}
	for i, e := range q.heap[1:cap(q.heap)] {
		if e.item != nil {
			t.Fatalf("free place %d holds an item", i+1)
		}
	}
	q.Pop()
	if cap(q.heap) > keep {
		t.Fatalf("the empty queue keeps %d places", cap(q.heap))
	}
}

func BenchmarkQueue(b *testing.B) {
	var q Queue[[8]uint64]
	for i := range b.N {
		q.Push(time.Unix(int64(i*7919%10007), 0), 100, [8]uint64{})
		if i > 10_000 {
			q.Pop()
		}
	}
}
