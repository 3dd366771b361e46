package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/schemas"
	"github.com/reenvio/reenvio/schemas/schematest"
)

func TestDeathReasonsAreThoseOfTheSchema(t *testing.T) {
	data, err := schemas.FS.ReadFile("common.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var common struct {
		Defs struct {
			DeathReason struct{ Enum []DeathReason }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &common); err != nil {
		t.Fatal(err)
	}
	if want := common.Defs.DeathReason.Enum; !reflect.DeepEqual(DeathReasons(), want) {
		t.Errorf("got %v, the schema has %v", DeathReasons(), want)
	}
}

func TestDeadLetterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, death := genDelivery().Draw(t, "delivery"), genDeath().Draw(t, "death")
		r := d.DeadLetter("webhooks.dlq", 2, death)
		r.Offset = 17
		l, err := ParseDeadLetter(r)
		if err != nil {
			t.Fatal(err)
		}
		want := DeadLetter{
			Delivery: *d, Position: Source{"webhooks.dlq", 2, 17}, Reason: death.Reason, Group: text(death.Group, maxGroupText),
			Message: text(death.Message, maxErrorText), Response: text(death.Response, maxResponseText), URLHost: text(death.URLHost, maxHostText),
			Dispatcher: text(death.Dispatcher, maxInstanceText), Version: text(death.Version, maxVersionText), DiedAt: death.At,
		}
		want.LastError, want.DueAt, want.Repaired = text(d.LastError, maxErrorText), Time{}, l.Repaired
		want.Headers, l.Headers = normal(want.Headers), normal(l.Headers)
		if !reflect.DeepEqual(l, want) {
			t.Fatalf("got  %+v\nwant %+v", l, want)
		}
		view, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate("dead-letter", view); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDeadLetterHeadersFollowTheSchema(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, death := genDelivery().Draw(t, "delivery"), genDeath().Draw(t, "death")
		if d.ProducedAt.IsZero() {
			d.ProducedAt = At(goldenProduced)
		}
		if death.At.IsZero() {
			death.At = At(goldenProduced)
		}
		death.Group, death.Dispatcher, death.Version = "g"+death.Group, "i"+death.Dispatcher, "v"+death.Version
		for _, r := range []*kgo.Record{d.DeadLetter("t", 0, death), d.MinimalDeadLetter("t", 0, death)} {
			if err := schematest.ValidateHeaders("dead-letter-headers", r.Headers); err != nil {
				t.Fatal(err)
			}
			for _, h := range r.Headers {
				if isOurs(h.Key) && (!utf8.Valid(h.Value) || strings.ContainsAny(string(h.Value), "\r\n\x00")) {
					t.Fatalf("%s is no text: %q", h.Key, h.Value)
				}
			}
		}
	})
}

// Whatever the event's size: key, value and what says what it is whole; the limit kept
// where they leave room for the least; own headers left out only when the whole can't fit.
func TestDeadLetterFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, death := genDelivery().Draw(t, "delivery"), genDeath().Draw(t, "death")
		full := d.DeadLetter("t", 0, death)
		var kept []kgo.RecordHeader
		for _, h := range d.Headers {
			if isEssential(h.Key) && len(h.Value) <= maxEventID {
				kept = append(kept, h)
			}
		}
		least := Size(d.record("t", 0, kept, d.countDropped(d.deathHeaders(death.brief()), kept)))
		death.Limit = rapid.IntRange(1, Size(full)+50).Draw(t, "limit")
		r := d.DeadLetter("t", 0, death)
		if !reflect.DeepEqual(r.Key, full.Key) || !reflect.DeepEqual(r.Value, full.Value) {
			t.Fatal("key or value was cut")
		}
		if Size(r) > max(death.Limit, least+20) {
			t.Fatalf("%d bytes, the limit is %d, the least is %d", Size(r), death.Limit, least)
		}
		if death.Limit >= Size(full) && !reflect.DeepEqual(r, full) {
			t.Fatal("it was cut although it fits")
		}
		l, err := ParseDeadLetter(r)
		if err != nil {
			t.Fatal(err)
		}
		if l.HeadersDropped != len(d.Headers)-len(l.Headers) {
			t.Fatalf("%d of %d headers are left, %d said to be dropped", len(l.Headers), len(d.Headers), l.HeadersDropped)
		}
		if l.Reason != death.Reason || l.Source != d.Source || l.Attempts != d.Attempts {
			t.Fatalf("the story was lost: %+v", l)
		}
	})
}

func TestDeadLetterDropsTheLargestFirst(t *testing.T) {
	d, _ := FromEvent(eventAt("w", bytes.Repeat([]byte("v"), 1000),
		header("ce_id", "e"), header("x-small", "1"), header("x-large", strings.Repeat("l", 3000)), header("x-medium", strings.Repeat("m", 1000)), header("ce_type", strings.Repeat("t", 2000))))
	names := func(r *kgo.Record) (names []string) {
		for _, h := range r.Headers {
			if !isOurs(h.Key) {
				names = append(names, h.Key)
			}
		}
		return names
	}
	death := goldenDeath()
	full := Size(d.DeadLetter("t", 0, death))
	for _, c := range []struct {
		over int
		want string
	}{
		{0, "ce_id x-small x-large x-medium ce_type"},
		{1000, "ce_id x-small x-medium ce_type"},
		{3500, "ce_id x-small ce_type"},
		{5500, "ce_id"},
	} {
		death.Limit = full - c.over
		if got := strings.Join(names(d.DeadLetter("t", 0, death)), " "); got != c.want {
			t.Errorf("%d over: %s, want %s", c.over, got, c.want)
		}
	}
}

func TestMinimalDeadLetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, death := genDelivery().Draw(t, "delivery"), genDeath().Draw(t, "death")
		r := d.MinimalDeadLetter("t", 1, death)
		if !reflect.DeepEqual(r.Value, d.Value) || !reflect.DeepEqual(r.Key, d.Key) {
			t.Fatal("key or value was cut")
		}
		bare := Size(&kgo.Record{Key: d.Key, Value: d.Value})
		if added := Size(r) - bare; added > 4<<10 {
			t.Fatalf("%d bytes of headers", added)
		}
		l, err := ParseDeadLetter(r)
		if err != nil || l.Reason != death.Reason || l.ID != d.ID || l.Source != d.Source || l.Moved != nil && *l.Moved != *d.Moved {
			t.Fatalf("%v, %+v\nof %+v", err, l, d)
		}
	})
}

func TestMinimalDeadLetterLeavesOutLongHeaders(t *testing.T) {
	d, _ := FromEvent(eventAt("w", nil, header("ce_id", strings.Repeat("i", 257)), header("content-type", strings.Repeat("c", 100_000)), header("x", "y")))
	r := d.MinimalDeadLetter("t", 0, goldenDeath())
	if l, err := ParseDeadLetter(r); err != nil || len(l.Headers) != 0 || l.HeadersDropped != 3 || Size(r) > 2<<10 {
		t.Errorf("%d bytes, %+v, %v", Size(r), l, err)
	}
}

func TestParseDeadLetterOfOthers(t *testing.T) {
	l, err := ParseDeadLetter(eventAt("w", []byte("v"), header("ce_id", "e")))
	if err == nil || !strings.Contains(err.Error(), "webhook-dlq-reason") || l.ID != "e" || string(l.Value) != "v" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestDeadLetterViewOfHeaders(t *testing.T) {
	d, _ := FromEvent(eventAt("w", nil, header("a", "1"), header("a", "2"), header("b", "\xff"), header("c", "3"), kgo.RecordHeader{Key: "d"}))
	l, _ := ParseDeadLetter(d.DeadLetter("t", 0, goldenDeath()))
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var view struct {
		Headers map[string]string   `json:"headers"`
		Whole   map[string][]string `json:"headers_base64"`
	}
	if err := json.Unmarshal(data, &view); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "2", "b": "\ufffd", "c": "3", "d": ""}; !reflect.DeepEqual(view.Headers, want) {
		t.Errorf("headers %v, want %v", view.Headers, want)
	}
	if want := map[string][]string{"a": {"MQ==", "Mg=="}, "b": {"/w=="}}; !reflect.DeepEqual(view.Whole, want) {
		t.Errorf("headers_base64 %v, want %v", view.Whole, want)
	}
}

func TestDeadLetterViewOfBytes(t *testing.T) {
	for _, c := range []struct {
		name       string
		key, value []byte
		want       map[string]any
	}{
		{"null", nil, nil, map[string]any{}},
		{"empty", []byte{}, []byte{}, map[string]any{"key": "", "value": ""}},
		{"text", []byte("w"), []byte("a\n"), map[string]any{"key": "w", "value": "a\n"}},
		{"bytes", []byte{0xff}, []byte{0, 0xff}, map[string]any{"key_base64": "/w==", "value_base64": "AP8="}},
	} {
		r := eventAt("", c.value)
		r.Key = c.key
		d, _ := FromEvent(r)
		l, _ := ParseDeadLetter(d.DeadLetter("t", 0, goldenDeath()))
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var view map[string]any
		if err := json.Unmarshal(data, &view); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"key", "key_base64", "value", "value_base64"} {
			if view[field] != c.want[field] {
				t.Errorf("%s: %s is %v, want %v", c.name, field, view[field], c.want[field])
			}
		}
	}
}
