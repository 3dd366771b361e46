package record

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, limit := genAnyText().Draw(t, "text"), rapid.IntRange(3, 1200).Draw(t, "limit")
		got := text(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%d bytes for a limit of %d: %q", len(got), limit, got)
		}
		if again := text(got, limit); again != got {
			t.Fatalf("%q became %q", got, again)
		}
		plain := !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) && utf8.ValidString(s)
		if plain && len(s) <= limit && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"a\r\n\tb\x00\x7f\xff", 99, `a\r\n\tb\x00\x7f\xff`},
		{"é\u2028ü", 99, `é\xe2\x80\xa8ü`},
		{"abcdef", 5, "ab…"},
		{"aéééé", 7, "aé…"},
		{"\ufffd", 9, "\ufffd"},
	} {
		if got := text(c.in, c.limit); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func TestSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := genSource().Draw(t, "source")
		if got, err := ParseSource(src.String()); err != nil || got != src {
			t.Fatalf("%v, %v", got, err)
		}
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a/0-9+-]{0,12}`)).Draw(t, "text")
		if got, err := ParseSource(s); err == nil && got.String() != s {
			t.Fatalf("%q was read as %v", s, got)
		}
	})
}

func TestTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64().Draw(t, "µs"))
		got, err := ParseTime(At(at).String())
		if err != nil || got != At(at) {
			t.Fatalf("%v became %v, %v", at, got, err)
		}
		if due := NotBefore(at); at.Before(lastTime) && at.After(firstTime) && (due.Before(at) || due.Sub(at) >= time.Millisecond) {
			t.Fatalf("%v is due at %v", at, due)
		}
	})
	for in, want := range map[string]string{
		"2026-11-30T13:00:00+01:00":                            "2026-11-30T12:00:00.000Z",
		"2026-11-30T12:00:00.123456789Z":                       "2026-11-30T12:00:00.123Z",
		"9999-12-31T23:59:59-10:00":                            "9999-12-31T23:59:59.999Z",
		"2026-11-30":                                           "",
		"1732968000":                                           "",
		"2026-11-30T12:00:00.000000000000000Z":                 "2026-11-30T12:00:00.000Z",
		"2026-11-30T12:00:00." + strings.Repeat("0", 60) + "Z": "",
	} {
		if got, err := ParseTime(in); got.String() != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	// A producer's timestamp can be any int64 of milliseconds.
	for _, ms := range []int64{1<<63 - 1, -1 << 63} {
		if s := At(time.UnixMilli(ms)).String(); s != "0001-01-01T00:00:00.001Z" && s != "9999-12-31T23:59:59.999Z" {
			t.Errorf("%d ms is %q", ms, s)
		}
	}
}

func TestTimeAndDurationInJSON(t *testing.T) {
	type both struct {
		T Time     `json:"t,omitzero"`
		D Duration `json:"d,omitempty"`
	}
	for in, want := range map[string]both{
		`{}`:                  {},
		`{"t":null,"d":null}`: {},
		`{"d":"1m0s"}`:        {D: Duration(time.Minute)},
		`{"d":"1.5s"}`:        {D: Duration(1500 * time.Millisecond)},
		`{"t":"` + goldenProduced.Format(time.RFC3339Nano) + `"}`: {T: At(goldenProduced)},
	} {
		var got both
		if err := json.Unmarshal([]byte(in), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{`{"t":5}`, `{"t":"x"}`, `{"t":""}`, `{"d":30}`, `{"d":"30"}`, `{"d":""}`} {
		if err := json.Unmarshal([]byte(in), &both{}); err == nil {
			t.Errorf("%s was read", in)
		}
	}
	if data, _ := json.Marshal(both{}); string(data) != "{}" {
		t.Errorf("nothing is %s", data)
	}
}

func TestDelivered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Custom(func(t *rapid.T) (id DeliveredID) {
			copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
			return id
		})).Draw(t, "ids")
		r := DeliveredRecord("webhooks.delivered", 1, ids)
		got, err := ParseDelivered(r.Value)
		if err != nil || len(got) != len(ids) || len(ids) > 0 && !reflect.DeepEqual(got, ids) {
			t.Fatalf("%v, %v, want %v", got, err, ids)
		}
		if len(r.Value) != 1+16*len(ids) {
			t.Fatalf("%d bytes for %d ids", len(r.Value), len(ids))
		}
	})
	for _, broken := range [][]byte{nil, {}, {2}, {1, 0}, make([]byte, 17)} {
		if _, err := ParseDelivered(broken); err == nil {
			t.Errorf("%v was read", broken)
		}
	}
	if size := Size(DeliveredRecord("t", 0, make([]DeliveredID, MaxDeliveredIDs))); size > MaxRecordBytes {
		t.Errorf("the most ids take %d bytes", size)
	}
}

func TestHashDelivered(t *testing.T) {
	base := HashDelivered("w", "e", "")
	for name, other := range map[string]DeliveredID{
		"webhook": HashDelivered("w2", "e", ""), "id": HashDelivered("w", "e2", ""), "run": HashDelivered("w", "e", "run/1"), "boundary": HashDelivered("we", "", ""),
	} {
		if other == base {
			t.Errorf("%s makes no difference", name)
		}
	}
	if HashDelivered("w", "e", "run/1") != HashDelivered("w", "e", "run/2") {
		t.Error("the count of a run is not part of the identity")
	}
}
