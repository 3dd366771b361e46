package retrytiers

import (
	"cmp"
	"slices"
	"time"
)

// Queue holds what is not due yet, and gives the earliest due first; of equal due times the one that came first. A queue
// in the order of arrival would make each record wait for the latest one before it, since jitter and hops mix them up.
//
// It has no bound: whoever fills it looks at Len and Bytes. The zero Queue is empty. It is not safe for concurrent use.
type Queue[T any] struct {
	heap  []entry[T]
	seq   uint64
	bytes int64
}

type entry[T any] struct {
	due   time.Time
	seq   uint64
	bytes int
	item  T
}

// keep is how many places an empty queue keeps for what comes next.
const keep = 64

func (e *entry[T]) before(o *entry[T]) bool {
	if c := e.due.Compare(o.due); c != 0 {
		return c < 0
	}
	return e.seq < o.seq
}

// Push puts in an item of so many bytes. Either all due times have a monotonic clock reading or none has: a mixture has
// no order when the wall clock is set.
func (q *Queue[T]) Push(due time.Time, bytes int, item T) {
	q.seq++
	q.bytes += int64(bytes)
	q.heap = append(q.heap, entry[T]{due, q.seq, bytes, item})
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q.heap[parent].before(&q.heap[i]) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// Peek is the item that is due first, and when.
func (q *Queue[T]) Peek() (due time.Time, item T, ok bool) {
	if len(q.heap) == 0 {
		return due, item, false
	}
	return q.heap[0].due, q.heap[0].item, true
}

// Pop takes out the item that is due first.
func (q *Queue[T]) Pop() (due time.Time, bytes int, item T, ok bool) {
	if len(q.heap) == 0 {
		return due, 0, item, false
	}
	first, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = entry[T]{} // nothing is held through the free place
	q.heap = q.heap[:last]
	q.sink()
	q.bytes -= int64(first.bytes)
	if last == 0 && cap(q.heap) > keep {
		q.heap = nil
	}
	return first.due, first.bytes, first.item, true
}

func (q *Queue[T]) sink() {
	i := 0
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.heap[child].before(&q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// Take takes out all items that match, those that are due first before the others.
func (q *Queue[T]) Take(match func(T) bool) (taken []T) {
	// What is in order is a heap.
	slices.SortFunc(q.heap, func(a, b entry[T]) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq)) })
	kept := q.heap[:0]
	for _, e := range q.heap {
		if match(e.item) {
			taken = append(taken, e.item)
			q.bytes -= int64(e.bytes)
		} else {
			kept = append(kept, e)
		}
	}
	clear(q.heap[len(kept):])
	q.heap = kept
	return taken
}

// Len is the number of items.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Bytes is what the items count for, together.
func (q *Queue[T]) Bytes() int64 { return q.bytes }
