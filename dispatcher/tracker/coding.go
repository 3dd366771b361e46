package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// A set is written in the shortest of four ways, named by its first byte. A varint is that of encoding/binary, unsigned.
//
//	holes   varint: length of the stretch; then for each hole, varint: complete offsets since the hole before
//	done    for each complete offset, varint: holes since the complete offset before
//	runs    varints: lengths of the stretches in turn, holes first
//	bitmap  one bit an offset, lowest first, 1 = complete
//
// A slow webhook leaves few holes in much that is complete, a start behind a burst few complete ones among holes, a dead
// receiver long runs, and a busy number a mixture of all, for which the bitmap is the bound.
const (
	codeHoles  = 'h'
	codeDone   = 'd'
	codeRuns   = 'r'
	codeBitmap = 'b'
)

// longest is the longest set that is read, in offsets: nothing that is added to it overflows.
const longest = 1 << 61

// Bounds that Tracker.Fits goes by: as a bitmap, and as a list of holes.
const (
	bitmapSpan  = int64(setBytes-1) * 8
	holesBudget = int64(setBytes - 1 - binary.MaxVarintLen64) // after the code and the length
)

// holesBound is an upper bound of what n holes within span offsets take, in bytes, without the stretch's length. A
// varint takes one byte, and one more for each power of 2^7 that it reaches, which only span>>7, span>>14, ... of them
// can, since they add up to less than span. To complete a hole never makes the list longer: the two distances around it
// become one, which is no longer than both were. So the bound holds for every subset too.
func holesBound(n, span int64) int64 {
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
	code, size := shortest(s)
	if size > int64(limit) {
		return raw, false
	}
	raw = append(raw, code)
	switch code {
	case codeHoles:
		raw = binary.AppendUvarint(raw, uint64(s.span()))
		raw = appendDistances(raw, s.runs, 0)
	case codeDone:
		raw = appendDistances(raw, s.runs, 1)
	case codeRuns:
		for _, n := range s.runs {
			raw = binary.AppendUvarint(raw, uint64(n))
		}
	case codeBitmap:
		raw = appendBitmap(raw, s)
	}
	return raw, true
}

func (s Set) span() (span int64) {
	for _, n := range s.runs {
		span += n
	}
	return span
}

// shortest picks the coding; at equal size the first.
func shortest(s Set) (code byte, size int64) {
	sizes := [...]int64{varintLen(s.span()), 0, 0, (s.span() + 7) / 8}
	for i, n := range s.runs {
		sizes[2] += varintLen(n)
		// A stretch of one kind costs one byte for each offset of it, and a varint for the distance to it: its first
		// offset's, in place of one of those bytes.
		sizes[i%2] += n
		if n > 0 && i > 0 {
			sizes[i%2] += varintLen(s.runs[i-1]) - 1
		}
	}
	code, size = codeHoles, sizes[0]
	for i, c := range []byte{codeDone, codeRuns, codeBitmap} {
		if sizes[i+1] < size {
			code, size = c, sizes[i+1]
		}
	}
	return code, size + 1
}

func varintLen(n int64) int64 { return int64(bits.Len64(uint64(n)|1)+6) / 7 }

// appendDistances writes each offset of one kind (runs of even index, or of odd) as its distance from the one before.
func appendDistances(raw []byte, runs []int64, kind int) []byte {
	for i, n := range runs {
		if i%2 != kind || n == 0 {
			continue
		}
		var before int64
		if i > 0 {
			before = runs[i-1]
		}
		raw = binary.AppendUvarint(raw, uint64(before))
		raw = append(raw, make([]byte, n-1)...)
	}
	return raw
}

func appendBitmap(raw []byte, s Set) []byte {
	start := len(raw)
	raw = append(raw, make([]byte, (s.span()+7)/8)...)
	var at int64
	for i, n := range s.runs {
		if i%2 == 1 {
			for x := at; x < at+n; x++ {
				raw[start+int(x/8)] |= 1 << (x % 8)
			}
		}
		at += n
	}
	return raw
}

var errSet = errors.New("cut off, or no set")

func parseSet(raw []byte) (Set, error) {
	if len(raw) == 0 {
		return Set{}, nil
	}
	var b setBuilder
	var err error
	switch code, body := raw[0], raw[1:]; code {
	case codeHoles:
		err = parseHoles(&b, body)
	case codeDone:
		err = eachVarint(body, func(_ int, holes int64) bool {
			b.add(false, holes)
			b.add(true, 1)
			return true
		})
	case codeRuns:
		err = eachVarint(body, func(i int, n int64) bool {
			b.add(i%2 == 1, n)
			return n > 0 || i == 0
		})
	case codeBitmap:
		for x := range int64(len(body)) * 8 {
			b.add(body[x/8]>>(x%8)&1 == 1, 1)
		}
	default:
		return Set{}, fmt.Errorf("coding %q is unknown: written by a newer dispatcher", code)
	}
	s := b.set()
	if err != nil || len(s.runs) == 0 { // the empty set is written as nothing
		return Set{}, errSet
	}
	return s, nil
}

func parseHoles(b *setBuilder, body []byte) error {
	var left int64
	err := eachVarint(body, func(i int, n int64) bool {
		if i == 0 {
			left = n
			return true
		}
		b.add(true, n)
		b.add(false, 1)
		left -= n + 1
		return true
	})
	if err != nil || left <= 0 { // the last offset of the stretch is a complete one
		return errSet
	}
	b.add(true, left)
	return nil
}

// eachVarint hands out all varints of a body. They add up to longest at most.
func eachVarint(body []byte, fn func(i int, n int64) bool) error {
	total := uint64(0)
	for i := 0; len(body) > 0; i++ {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > longest || total+n > longest || !fn(i, int64(n)) {
			return errSet
		}
		total += n
		body = body[size:]
	}
	return nil
}
