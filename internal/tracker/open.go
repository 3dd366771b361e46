package tracker

import "iter"

// Open gives the stretches of [committed, end) that are not known to be complete, as their first offset and the one after
// their last, lowest first. committed is the offset of the commit whose metadata held the set. It is for those who look
// at a commit from outside: how many records really lie in a stretch only the topic can tell.
func (s Set) Open(committed, end int64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		at := committed
		for i, n := range s.runs {
			if at >= end {
				return
			}
			if hole := i%2 == 0 && n > 0; hole && !yield(at, min(at+n, end)) {
				return
			}
			at += n
		}
		if at < end {
			yield(at, end)
		}
	}
}
