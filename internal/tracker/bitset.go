package tracker

import (
	"iter"
	"math/bits"
	"slices"
	"sort"
)

const (
	chunkShift = 9
	chunkSize  = 1 << chunkShift
	// Emptied chunks in the middle are left until they are the larger part: taking them out one by one would move
	// all that follow each time. Below this many it is not worth the trouble.
	fewChunks = 16
)

// bitset is a set of offsets that grows at its upper end and shrinks anywhere, mostly at its lower end. Bits lie in
// chunks, and only chunks with something in them are kept: the holes of a partition are few, and may be far apart.
type bitset struct {
	chunks []chunk // by ascending id
	count  int
	empty  int // chunks with nothing in them
}

type chunk struct {
	id   int64 // offset / chunkSize
	n    int   // bits set
	bits [chunkSize / 64]uint64
}

// add puts in an offset that is larger than any before it.
func (b *bitset) add(x int64) {
	id := x >> chunkShift
	last := len(b.chunks) - 1
	if last < 0 || b.chunks[last].id != id {
		b.chunks = append(b.chunks, chunk{id: id})
		last++
	} else if b.chunks[last].n == 0 {
		b.empty--
	}
	c := &b.chunks[last]
	c.bits[x%chunkSize/64] |= 1 << (x % 64)
	c.n++
	b.count++
}

// remove takes out an offset and reports whether it was there.
func (b *bitset) remove(x int64) bool {
	i, ok := b.find(x >> chunkShift)
	if !ok {
		return false
	}
	c := &b.chunks[i]
	word, bit := &c.bits[x%chunkSize/64], uint64(1)<<(x%64)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	c.n--
	b.count--
	if c.n == 0 {
		b.empty++
		b.trim()
	}
	return true
}

// find gives the place of a chunk. Ids ascend, so a chunk lies at most as far from the first as its id does, and
// exactly there while none between them was dropped.
func (b *bitset) find(id int64) (int, bool) {
	if len(b.chunks) == 0 || id < b.chunks[0].id {
		return 0, false
	}
	i := int(min(id-b.chunks[0].id, int64(len(b.chunks)-1)))
	if b.chunks[i].id != id {
		i = sort.Search(i, func(i int) bool { return b.chunks[i].id >= id })
	}
	return i, b.chunks[i].id == id
}

// trim drops empty chunks at the lower end, so that the first chunk holds the lowest offset, and all of them once
// they are many.
func (b *bitset) trim() {
	for len(b.chunks) > 0 && b.chunks[0].n == 0 {
		b.chunks = b.chunks[1:]
		b.empty--
	}
	if len(b.chunks) > fewChunks && b.empty > len(b.chunks)/2 {
		b.chunks = slices.DeleteFunc(b.chunks, func(c chunk) bool { return c.n == 0 })
		b.empty = 0
	}
}

// min is the lowest offset.
func (b *bitset) min() (int64, bool) {
	for from := range b.runs() {
		return from, true
	}
	return 0, false
}

// runs gives the offsets in ascending order, as stretches without a break (of 64 at most: a longer one comes in parts).
func (b *bitset) runs() iter.Seq2[int64, int64] {
	return func(yield func(from, n int64) bool) {
		for i := range b.chunks {
			c := &b.chunks[i]
			for j, word := range c.bits {
				base := c.id<<chunkShift + int64(j)*64
				for word != 0 {
					low := bits.TrailingZeros64(word)
					n := bits.TrailingZeros64(^(word >> low))
					if !yield(base+int64(low), int64(n)) {
						return
					}
					word &^= (1<<n - 1) << low
				}
			}
		}
	}
}

// splits gives places at which the set can be cut in two, from the upper end (an offset above all in it) down, and how
// many offsets lie below each.
func (b *bitset) splits(above int64) iter.Seq2[int64, int] {
	return func(yield func(at int64, below int) bool) {
		below := b.count
		if !yield(above, below) {
			return
		}
		for _, c := range slices.Backward(b.chunks) {
			below -= c.n
			if !yield(c.id<<chunkShift, below) {
				return
			}
		}
	}
}
