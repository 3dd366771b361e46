package tracker

// restored walks along the set of the commit that a tracker started from, as the records come in again. It keeps the
// runs and a cursor, and never expands them: the set is read from a topic, and a damaged one may speak of 2^60 offsets.
type restored struct {
	runs []int64 // from the cursor on: holes when hole, else complete ones, then in turn
	hole bool
	at   int64 // offset at which runs[0] begins
	end  int64 // one after the last complete offset

	ahead int64 // holes in runs
}

func newRestored(committed int64, done Set) restored {
	r := restored{runs: done.runs, hole: true, at: committed, end: committed}
	for i, n := range done.runs {
		r.end += n
		if i%2 == 0 {
			r.ahead += n
		}
	}
	return r
}

// skip moves to an offset just received, which is beyond all before it, and reports whether it was complete.
func (r *restored) skip(offset int64) bool {
	for len(r.runs) > 0 && offset-r.at >= r.runs[0] {
		if r.hole {
			r.ahead -= r.runs[0]
		}
		r.at += r.runs[0]
		r.runs, r.hole = r.runs[1:], !r.hole
	}
	return len(r.runs) > 0 && !r.hole
}

// holes is the number of holes from an offset on that lies in the run under the cursor, or after a run that ends there.
func (r *restored) holes(from int64) int64 {
	if len(r.runs) > 0 && r.hole {
		return r.ahead - (from - r.at)
	}
	return r.ahead
}

// rest adds what lies from an offset on to a set.
func (r *restored) rest(from int64, set *setBuilder) {
	done := !r.hole
	skip := from - r.at
	for _, n := range r.runs {
		set.add(done, n-skip)
		done, skip = !done, 0
	}
}
