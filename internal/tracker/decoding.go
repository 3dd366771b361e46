package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// longest is the longest set that is read, in offsets: nothing that is added to it overflows.
const longest = 1 << 61

var errSet = errors.New("cut off, or no set")

// parseSet reads what appendSet wrote. What could be written shorter is read too: another version may choose otherwise.
func parseSet(raw []byte) (Set, error) {
	if len(raw) == 0 {
		return Set{}, nil
	}
	v := varints{rest: raw[1:]}
	var b setBuilder
	switch raw[0] {
	case codeMixed:
		parseMixed(&b, &v)
	case codeDone:
		for v.more() {
			b.add(false, v.next())
			b.add(true, 1)
		}
	case codeRuns:
		for i := 0; v.more(); i++ {
			n := v.next()
			b.add(i%2 == 1, n)
			v.bad = v.bad || n == 0 && i > 0
		}
	default:
		return Set{}, fmt.Errorf("coding %q is unknown: written by a newer dispatcher", raw[0])
	}
	s := b.set()
	if v.bad || len(s.runs) == 0 { // the empty set is written as nothing
		return Set{}, errSet
	}
	return s, nil
}

func parseMixed(b *setBuilder, v *varints) {
	for holes := v.next(); holes > 0 && !v.bad; holes-- {
		b.add(true, v.next())
		b.add(false, 1)
	}
	b.add(true, v.next())
	for _, bits := range v.rest {
		for x := range 8 {
			b.add(bits>>x&1 == 1, 1)
		}
	}
}

// varints reads varints that add up to longest at most. After a fault all are 0.
type varints struct {
	rest  []byte
	total uint64
	bad   bool
}

func (v *varints) more() bool { return len(v.rest) > 0 && !v.bad }

func (v *varints) next() int64 {
	n, size := binary.Uvarint(v.rest)
	if v.bad || size <= 0 || n > longest || v.total+n > longest {
		v.bad = true
		return 0
	}
	v.total += n
	v.rest = v.rest[size:]
	return int64(n)
}
