package dispatcher

import "slices"

// fifo is a queue that can also take a thing back at its front.
type fifo[T any] struct {
	head  []T // what was put back, last first
	items []T
	first int
}

func (q *fifo[T]) len() int { return len(q.head) + len(q.items) - q.first }

func (q *fifo[T]) push(v T) { q.items = append(q.items, v) }

func (q *fifo[T]) putBack(v T) { q.head = append(q.head, v) }

func (q *fifo[T]) peek() (v T, ok bool) {
	switch {
	case len(q.head) > 0:
		return q.head[len(q.head)-1], true
	case q.first < len(q.items):
		return q.items[q.first], true
	}
	return v, false
}

// front is up to n of those that would come next, of what was pushed.
func (q *fifo[T]) front(n int) []T {
	return q.items[q.first:min(q.first+n, len(q.items))]
}

func (q *fifo[T]) pop() (v T, ok bool) {
	var zero T
	if i := len(q.head) - 1; i >= 0 {
		v, q.head[i] = q.head[i], zero
		q.head = q.head[:i]
		return v, true
	}
	if q.first == len(q.items) {
		return v, false
	}
	v, q.items[q.first] = q.items[q.first], zero
	q.first++
	// Give the space back once half of it is spent: each element moves at most once per halving.
	if q.first == len(q.items) {
		q.items, q.first = nil, 0
	} else if q.first > 64 && q.first*2 > len(q.items) {
		q.items, q.first = append([]T(nil), q.items[q.first:]...), 0
	}
	return v, true
}

// each calls f with all that is in the queue, in no particular order.
func (q *fifo[T]) each(f func(T)) {
	for _, v := range q.head {
		f(v)
	}
	for _, v := range q.items[q.first:] {
		f(v)
	}
}

// find is the first that matches.
func (q *fifo[T]) find(match func(T) bool) (v T, ok bool) {
	for _, v := range slices.Backward(q.head) {
		if match(v) {
			return v, true
		}
	}
	for _, v := range q.items[q.first:] {
		if match(v) {
			return v, true
		}
	}
	return v, false
}

// take takes out all that match, in order.
func (q *fifo[T]) take(match func(T) bool) (taken []T) {
	for range q.len() {
		if v, _ := q.pop(); match(v) {
			taken = append(taken, v)
		} else {
			q.push(v)
		}
	}
	return taken
}
