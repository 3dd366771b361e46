package tracker

import (
	"encoding/binary"
	"math/bits"
)

// A set is written in the shortest of three ways, named by its first byte. A varint is that of encoding/binary, unsigned.
//
//	mixed   varint: number of holes in a list; for each of them, varint: complete offsets since the hole before;
//	        varint: complete offsets after the last of them; from there on one bit an offset, lowest first, 1 = complete
//	done    for each complete offset, varint: holes since the complete offset before
//	runs    varints: lengths of the stretches in turn, holes first
//
// A partition in full swing has a few old holes (slow requests, strict heads) far behind a stretch at the newest end that
// is half done. The list is for the former and the bits for the latter: a list alone would grow with the stretch, bits
// alone with the distance. Few complete offsets among holes, and long runs, are what a start or a dead receiver leaves.
const (
	codeMixed = 'm'
	codeDone  = 'd'
	codeRuns  = 'r'
)

// fitBytes is what Tracker.Fits reckons with for list and bits: beside them there are the code, the number of holes (two
// bytes do for all that fit) and the complete offsets after them (nine do for any).
const (
	fitBytes = int64(setBytes - 1 - 2 - 9)
	fitSpan  = fitBytes * 8 // offsets that fit as bits
)

// listBound is an upper bound of what the distances of n holes within span offsets take, in bytes. A
// varint takes one byte, and one more for each power of 2^7 that it reaches, which only span>>7, span>>14, ... of them
// can, since they add up to less than span. To complete a hole never makes the list longer: the two distances around it
// become one, which is no longer than both were. So the bound holds for every subset too.
func listBound(n, span int64) int64 {
	size := n
	for span >>= 7; span > 0; span >>= 7 {
		size += min(n, span)
	}
	return size
}

// appendSet writes a set if it takes no more than limit bytes.
func appendSet(raw []byte, s Set, limit int) ([]byte, bool) {
	if len(s.runs) == 0 {
		return raw, true
	}
	code, size, split := shortest(s)
	if size > int64(limit) {
		return raw, false
	}
	raw = append(raw, code)
	switch code {
	case codeMixed:
		raw = appendMixed(raw, s.runs[:split], s.runs[split:])
	case codeDone:
		raw = appendDistances(raw, s.runs, 1)
	case codeRuns:
		for _, n := range s.runs {
			raw = binary.AppendUvarint(raw, uint64(n))
		}
	}
	return raw, true
}

// shortest picks the coding, at equal size the first, and for mixed the run at which the bits begin.
func shortest(s Set) (code byte, size int64, split int) {
	size, split = mixedSize(s)
	code = codeMixed
	var done, runs int64
	for i, n := range s.runs {
		runs += varintLen(n)
		if i%2 == 1 {
			done += stretchSize(s.runs, i)
		}
	}
	if done < size {
		code, size = codeDone, done
	}
	if runs < size {
		code, size = codeRuns, runs
	}
	return code, size + 1, split
}

// mixedSize looks for the best place at which to go from the list to bits. Only the beginnings of hole runs can be it:
// inside a run of holes one more in the list takes a byte and saves a bit, inside a run of complete ones a bit is saved
// for nothing.
func mixedSize(s Set) (size int64, split int) {
	rest := span(s.runs)
	size = 2 + bitBytes(rest)
	var list, holes int64
	for i := 0; i < len(s.runs); i += 2 {
		list += stretchSize(s.runs, i)
		holes += s.runs[i]
		rest -= s.runs[i] + s.runs[i+1]
		if n := varintLen(holes) + list + varintLen(s.runs[i+1]) + bitBytes(rest); n < size {
			size, split = n, i+2
		}
	}
	return size, split
}

func bitBytes(span int64) int64 { return (span + 7) / 8 }

func span(runs []int64) (sum int64) {
	for _, n := range runs {
		sum += n
	}
	return sum
}

func varintLen(n int64) int64 { return int64(bits.Len64(uint64(n)|1)+6) / 7 }

// stretchSize is what one run takes in appendDistances: a byte for each of its offsets, but for the first a varint.
func stretchSize(runs []int64, i int) int64 {
	if runs[i] == 0 {
		return 0
	}
	return runs[i] - 1 + varintLen(before(runs, i))
}

// appendDistances writes each offset of one kind (runs of even index, or of odd) as its distance from the one before.
func appendDistances(raw []byte, runs []int64, kind int) []byte {
	for i := kind; i < len(runs); i += 2 {
		if runs[i] > 0 {
			raw = binary.AppendUvarint(raw, uint64(before(runs, i)))
			raw = append(raw, make([]byte, runs[i]-1)...)
		}
	}
	return raw
}

func before(runs []int64, i int) int64 {
	if i == 0 {
		return 0
	}
	return runs[i-1]
}

// appendMixed writes some runs as a list of holes, and the others as bits.
func appendMixed(raw []byte, list, bits []int64) []byte {
	var holes int64
	for i := 0; i < len(list); i += 2 {
		holes += list[i]
	}
	raw = binary.AppendUvarint(raw, uint64(holes))
	raw = appendDistances(raw, list, 0)
	raw = binary.AppendUvarint(raw, uint64(before(list, len(list))))
	start, at := len(raw), int64(0)
	raw = append(raw, make([]byte, bitBytes(span(bits)))...)
	for i, n := range bits {
		if i%2 == 1 {
			for x := at; x < at+n; x++ {
				raw[start+int(x/8)] |= 1 << (x % 8)
			}
		}
		at += n
	}
	return raw
}
