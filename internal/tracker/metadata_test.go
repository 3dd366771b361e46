package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// widest is the id that leaves the least room for the set.
var widest = CycleID{Instance: strings.Repeat("i", MaxInstance), Boot: strings.Repeat("b", MaxBoot), N: 1<<64 - 1}

func setOf(done func(x int64) bool, span int64) Set {
	var b setBuilder
	for x := range span {
		b.add(done(x), 1)
	}
	return b.set()
}

func mustEncode(t interface{ Fatal(...any) }, id CycleID, s Set) string {
	metadata, err := Encode(id, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(metadata) >= 4096 || !strings.HasPrefix(metadata, "1.") {
		t.Fatal("not a metadata of less than 4,096 bytes:", len(metadata), metadata)
	}
	return metadata
}

func mustRoundTrip(t interface{ Fatal(...any) }, id CycleID, s Set) {
	gotID, got, err := Decode(mustEncode(t, id, s))
	if err != nil {
		t.Fatal(err)
	}
	if gotID != id || !reflect.DeepEqual(got, s) {
		t.Fatal("wrote", id, s, "read", gotID, got)
	}
}

// 1,000 holes in 200,000 offsets fit, however they lie.
func TestThousandHolesFit(t *testing.T) {
	const span, holes = 200_000, 1000
	rapid.Check(t, func(t *rapid.T) {
		rnd := newRand(rapid.Uint64().Draw(t, "seed"))
		// Clusters of any width, from all holes in a row to all far apart.
		width := rapid.Int64Range(1, span/holes-1).Draw(t, "width")
		start := rapid.Int64Range(0, span-holes*width).Draw(t, "start")
		spread := rapid.Bool().Draw(t, "spread")
		open := map[int64]bool{0: true}
		for len(open) < holes {
			switch {
			case spread:
				open[rnd.Int64N(span-1)] = true
			default:
				open[start+int64(len(open))*width] = true
			}
		}
		mustRoundTrip(t, widest, setOf(func(x int64) bool { return !open[x] }, span))
	})
}

// The worst spread for a list of distances: each of them just too long for one byte.
func TestThousandHolesWorstSpread(t *testing.T) {
	for _, distance := range []int64{129, 150, 199} {
		mustRoundTrip(t, widest, setOf(func(x int64) bool { return x >= 1000*distance || x%distance != 0 }, 200_000))
	}
}

// Any half-done window of 20,000 fits: as many complete ones as not, in any arrangement.
func TestHalfDoneWindowFits(t *testing.T) {
	const span = 20_000
	rapid.Check(t, func(t *rapid.T) {
		rnd := newRand(rapid.Uint64().Draw(t, "seed"))
		done := make([]bool, span)
		switch rapid.IntRange(0, 2).Draw(t, "arrangement") {
		case 0: // no order at all
			for i, j := range rnd.Perm(span) {
				done[j] = i < span/2
			}
		case 1: // alternating stretches
			n := rapid.IntRange(1, 300).Draw(t, "stretch")
			for i := range done {
				done[i] = i/n%2 == 1
			}
		case 2: // mixed
			n := 1
			for i := range done {
				if rnd.IntN(n) == 0 {
					n = 1 + rnd.IntN(40)
				}
				done[i] = n%2 == 0
			}
		}
		done[0], done[span-1] = false, true
		mustRoundTrip(t, widest, setOf(func(x int64) bool { return done[x] }, span))
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := CycleID{
			Instance: rapid.StringN(0, -1, MaxInstance).Draw(t, "instance"),
			Boot:     rapid.StringN(0, -1, MaxBoot).Draw(t, "boot"),
			N:        rapid.Uint64().Draw(t, "n"),
		}
		length := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, 300), rapid.Int64Range(1, 1<<40))
		var b setBuilder
		b.add(true, rapid.Int64Range(0, 1).Draw(t, "first is complete"))
		for range rapid.IntRange(0, 150).Draw(t, "runs") {
			b.add(false, length.Draw(t, "holes"))
			b.add(true, length.Draw(t, "complete"))
		}
		mustRoundTrip(t, id, b.set())
	})
}

// Each coding is used where it is the shortest, and its size is what was reckoned.
func TestCodings(t *testing.T) {
	for code, s := range map[byte]Set{
		codeMixed: {runs: []int64{1, 500, 1, 500, 1, 500}},
		codeDone:  {runs: []int64{500, 1, 500, 1, 0x7f, 1}},
		codeRuns:  {runs: []int64{5000, 5000, 5000, 5000}},
	} {
		raw, ok := appendSet(nil, s, maxBytes)
		if _, size, _ := shortest(s); !ok || raw[0] != code || int64(len(raw)) != size {
			t.Errorf("coding %q of %d bytes, want %q of %d: %v", raw[0], len(raw), code, size, s)
		}
		mustRoundTrip(t, CycleID{}, s)
	}
}

func TestEncodeRefuses(t *testing.T) {
	if _, err := Encode(CycleID{Instance: strings.Repeat("i", MaxInstance+1)}, Set{}); err == nil {
		t.Error("an instance that is too long was accepted")
	}
	noOrder := func(x int64) bool { return x%2 == 1 || x%5 == 0 }
	const room = int64(maxBytes) - 3 - 3                  // after an empty id, the coding, and no list
	mustRoundTrip(t, CycleID{}, setOf(noOrder, room*8+2)) // the first two are complete and take no bit
	if _, err := Encode(CycleID{}, setOf(noOrder, room*8+4)); err == nil {
		t.Error("a set that is too large was accepted")
	}
}

// The bytes are read by other versions.
func TestGolden(t *testing.T) {
	id := CycleID{"host-1", "abcdef01", 11_000}
	const begin = "\x06host-1\x08abcdef01\xf8\x55"
	for raw, s := range map[string]Set{
		begin: {},
		begin + "m\x04\x00\x64\x92\x03\x00\xee\x03": {runs: []int64{1, 100, 1, 402, 2, 494}}, // a list alone
		begin + "m\x01\x00\x90\x4e\x24\x45\x49":     {runs: []int64{1, 10_000, 2, 1, 2, 1, 2, 1, 1, 1, 3, 1, 1, 1, 2, 1, 2, 1}},
		begin + "d\xe8\x07\xe8\x07":                 {runs: []int64{1000, 1, 1000, 1}},
		begin + "r\x0a\x0b\x0c\x0d":                 {runs: []int64{10, 11, 12, 13}},
	} {
		want := prefix + base64.RawURLEncoding.EncodeToString([]byte(raw))
		if got := mustEncode(t, id, s); got != want {
			t.Errorf("%v: got %s\nwant %s", s, got, want)
		}
	}
}

func TestDecodeOfOtherTools(t *testing.T) {
	if id, s, err := Decode(""); err != nil || id != (CycleID{}) || len(s.runs) != 0 {
		t.Errorf("the empty text: %v %v %v", id, s, err)
	}
	if _, _, err := Decode("1.AAAAZAE"); err != nil {
		t.Error(err)
	}
	for _, garbage := range []string{"x", "1.", "1.!", "2.AAAA", "consumer note", "1.AAAAZAF" /* "1.AAAAZAE" with a bit after the end */} {
		if _, _, err := Decode(garbage); err == nil {
			t.Errorf("%q was read", garbage)
		}
	}
}

func TestDecodeOfDamagedBytes(t *testing.T) {
	long := func(n int) []byte { return append([]byte{byte(n)}, make([]byte, n)...) }
	for name, raw := range map[string][]byte{
		"nothing":                       {},
		"instance cut off":              {2, 'x'},
		"instance too long":             append(long(MaxInstance+1), 0, 0),
		"boot too long":                 append([]byte{0}, append(long(MaxBoot+1), 0)...),
		"no cycle number":               {0, 0},
		"cycle number cut off":          {0, 0, 0x80},
		"unknown coding":                {0, 0, 0, 'x', 1},
		"mixed: nothing":                {0, 0, 0, codeMixed, 0, 0},
		"mixed: cut off":                {0, 0, 0, codeMixed, 1, 5},
		"mixed: a list cut off":         {0, 0, 0, codeMixed, 9, 1, 1},
		"mixed: a negative distance":    appendVarints([]byte{0, 0, 0, codeMixed}, 1, 1<<64-5, 5),
		"mixed: wraps around":           appendVarints([]byte{0, 0, 0, codeMixed}, 2, 7, 1<<64-5, 5),
		"mixed: no bit":                 {0, 0, 0, codeMixed, 1, 0, 0, 0},
		"done: cut off":                 {0, 0, 0, codeDone, 1, 0x80},
		"runs: two of nothing":          {0, 0, 0, codeRuns, 1, 0, 1, 1},
		"runs: holes only":              {0, 0, 0, codeRuns, 7},
		"runs: more than there can be":  appendVarints([]byte{0, 0, 0, codeRuns}, 1<<63, 1<<63, 1, 1),
		"runs: together more than that": appendVarints([]byte{0, 0, 0, codeRuns}, 1<<61, 1<<61),
	} {
		if id, s, err := Decode(prefix + base64.RawURLEncoding.EncodeToString(raw)); err == nil {
			t.Errorf("%s: read as %v %v", name, id, s)
		}
	}
}

func appendVarints(raw []byte, values ...uint64) []byte {
	for _, v := range values {
		raw = binary.AppendUvarint(raw, v)
	}
	return raw
}

// FuzzDecode: no text makes it panic, and what it reads can be worked with: a start from it, and a commit after that.
func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add("1.BmhvY3N0")
	f.Add("1.AAAAaP____________8BAA")
	for _, s := range []Set{{}, {runs: []int64{1, 2}}, {runs: []int64{0, 7, 1 << 50, 3}}, setOf(func(x int64) bool { return x%3 == 0 }, 100)} {
		metadata, err := Encode(CycleID{"i", "b", 3}, s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(metadata)
	}
	f.Fuzz(func(t *testing.T, metadata string) {
		id, s, err := Decode(metadata)
		if err != nil {
			return
		}
		if len(metadata) < 4000 { // whoever wrote it may have put a bit where we put a byte
			mustRoundTrip(t, id, s)
		}
		tr := New(3, s)
		for _, x := range []int64{3, 4, 9, 1 << 20, 1 << 62} {
			tr.Fits(1, x)
			if tr.Received(x) {
				tr.Complete(x)
			}
			tr.Snapshot()
		}
	})
}
