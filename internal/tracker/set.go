package tracker

// Set is which offsets are complete beyond a committed one, by their distance from it. The zero Set is empty. What it
// says of offsets that no record has (gaps) means nothing.
type Set struct {
	// Lengths of stretches in turn: incomplete, complete, incomplete, ..., complete. Only the first may be 0: the
	// committed offset is itself known to be complete when it lies right after the last one received.
	runs []int64
}

// setBuilder puts a Set together from stretches in ascending order.
type setBuilder struct{ runs []int64 }

func (b *setBuilder) add(done bool, n int64) {
	if n <= 0 {
		return
	}
	if last := len(b.runs) - 1; last >= 0 && done == (last%2 == 1) {
		b.runs[last] += n
		return
	}
	if done && len(b.runs) == 0 {
		b.runs = append(b.runs, 0)
	}
	b.runs = append(b.runs, n)
}

// set is the result; it ends with the last complete offset.
func (b *setBuilder) set() Set {
	if len(b.runs)%2 == 1 {
		b.runs = b.runs[:len(b.runs)-1]
	}
	if len(b.runs) == 0 {
		return Set{}
	}
	return Set{runs: b.runs}
}
