package record

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/schemas/schematest"
)

func header(name, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: name, Value: []byte(value)}
}

// eventAt is a record at webhooks.events/3/1042.
func eventAt(key string, value []byte, headers ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{Topic: "webhooks.events", Partition: 3, Offset: 1042, Key: []byte(key), Value: value, Headers: headers, Timestamp: goldenProduced}
}

// The ids below were made with Python's hashlib and base64.
const (
	derivedAtPlace = "evt_3rddydc5qdk6i6dbso2llkpnam"
	derivedAtMoved = "evt_6vnt2eiynod3fimzdfgq4nbiha"
)

func TestEventAttributes(t *testing.T) {
	d, err := FromEvent(goldenRecord(t))
	if err != nil {
		t.Fatal(err)
	}
	want := goldenEvent
	// The event's own headers hold the attributes too, as they came.
	want.Headers = goldenRecord(t).Headers
	if !reflect.DeepEqual(d.Event, want) {
		t.Errorf("got  %+v\nwant %+v", d.Event, want)
	}
	if d.Source != goldenPlace || !d.ProducedAt.Equal(goldenProduced) || d.Attempts != 0 || string(d.Key) != "crm.orders" {
		t.Errorf("got %+v", d)
	}
}

func TestEventReadsTwoHeadersOfOursOnly(t *testing.T) {
	d, err := FromEvent(eventAt("w", nil, header("a", "1"), header("webhook-attempt", "4"), header("webhook-due-at", "2030-01-01T00:00:00.000Z"),
		header("webhook-source", "other/0/0"), header("__dlq.errors.topic", "x"), header("webhook-dlq-reason", "expired"), header("webhook-reason", "paused"),
		header("webhook-last-error", "x"), header("webhook-redrive", "run-7/2"), header("a", "2"), header("webhook-moved", "webhooks.events/1/7"), header("ce_id", "e")))
	if err != nil {
		t.Fatal(err)
	}
	if d.Attempts != 0 || !d.DueAt.IsZero() || d.Source != goldenPlace || d.Parked != "" || d.LastError != "" {
		t.Errorf("a forged header was read: %+v", d)
	}
	if d.Redrive != "run-7/2" || d.Moved == nil || *d.Moved != (Source{"webhooks.events", 1, 7}) || d.First() != *d.Moved {
		t.Errorf("moved %v, redrive %q", d.Moved, d.Redrive)
	}
	if want := []kgo.RecordHeader{header("a", "1"), header("a", "2"), header("ce_id", "e")}; !reflect.DeepEqual(d.Headers, want) {
		t.Errorf("own headers %v, want %v", d.Headers, want)
	}
}

func TestEventIgnoresMalformedHeadersOfOurs(t *testing.T) {
	for _, moved := range []string{"", "t/0", "t/-1/0", "t/0/+5", "t/00/1", "t/0/1/2", "bad topic/0/1", "t/4294967296/1", "/0/0"} {
		if d, _ := FromEvent(eventAt("w", nil, header("webhook-moved", moved))); d.Moved != nil || d.ID != derivedAtPlace {
			t.Errorf("webhook-moved %q was read as %v", moved, d.Moved)
		}
	}
	for _, redrive := range []string{"", "run", "/1", "run/", "run/x", "run/-1", "run/1234567890", "r n/1", "a/b/1", strings.Repeat("r", 255) + "/1"} {
		if d, _ := FromEvent(eventAt("w", nil, header("webhook-redrive", redrive))); d.Redrive != "" {
			t.Errorf("webhook-redrive %q was read", redrive)
		}
	}
}

func TestEventWithoutID(t *testing.T) {
	for name, headers := range map[string][]kgo.RecordHeader{
		"absent": nil, "empty": {header("ce_id", "")}, "null": {{Key: "ce_id"}}, "structured, absent": {header("content-type", cloudEventsJSON)},
	} {
		d, err := FromEvent(eventAt("w", []byte(`{}`), headers...))
		if err != nil || !d.IDDerived || d.ID != derivedAtPlace {
			t.Errorf("%s: id %q, derived %v, %v", name, d.ID, d.IDDerived, err)
		}
	}
	d, err := FromEvent(eventAt("w", nil, header("webhook-moved", "webhooks.events/1/7")))
	if err != nil || d.ID != derivedAtMoved {
		t.Errorf("moved: id %q, want that of the first record %q (%v)", d.ID, derivedAtMoved, err)
	}
}

func TestEventStructured(t *testing.T) {
	body := []byte(`{"specversion":"1.0","ID":"no","id":"e-1","type":"order.created","source":"/s","time":"2026-11-30T13:00:00.5+01:00",
		"partitionkey":"k","expirytime":"2026-12-01T00:00:00Z","traceparent":"tp","data":{"id":"inner"},"id":"e-1"}`)
	for _, contentType := range []string{cloudEventsJSON, "Application/CloudEvents+JSON; charset=utf-8"} {
		d, err := FromEvent(eventAt("w", body, header("content-type", contentType), header("ce_id", "from-header"), header("ce_type", "t")))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Structured || d.ID != "e-1" || d.Type != "order.created" || d.CESource != "/s" || d.PartitionKey != "k" || d.Traceparent != "tp" ||
			d.Time.String() != "2026-11-30T12:00:00.500Z" || d.Expiry.String() != "2026-12-01T00:00:00.000Z" || d.ContentType != contentType {
			t.Errorf("got %+v", d.Event)
		}
		if &d.Value[0] != &body[0] || len(d.Value) != len(body) {
			t.Error("the value was touched")
		}
	}
}

func TestEventStructuredOddities(t *testing.T) {
	for _, c := range []struct{ name, contentType, value, id string }{
		{"other media type", "application/cloudevents-batch+json", `[{"id":"x"}]`, derivedAtPlace},
		{"no JSON", cloudEventsJSON, `{"id":"x"`, derivedAtPlace},
		{"no object", cloudEventsJSON, `["id"]`, derivedAtPlace},
		{"null id", cloudEventsJSON, `{"id":null}`, derivedAtPlace},
		{"number as id", cloudEventsJSON, `{"id":7}`, "7"},
		{"other case", cloudEventsJSON, `{"Id":"x"}`, derivedAtPlace},
	} {
		d, err := FromEvent(eventAt("w", []byte(c.value), header("content-type", c.contentType)))
		if err != nil || d.ID != c.id || string(d.Value) != c.value {
			t.Errorf("%s: id %q, want %q (%v)", c.name, d.ID, c.id, err)
		}
	}
	if d, err := FromEvent(eventAt("w", nil, header("content-type", cloudEventsJSON))); err != nil || d.Value != nil || !d.IDDerived {
		t.Errorf("null value: %+v, %v", d, err)
	}
}

func TestEventInvalid(t *testing.T) {
	long := strings.Repeat("k", 257)
	for _, c := range []struct {
		name, problem string
		key           []byte
		headers       []kgo.RecordHeader
	}{
		{"no key", "no key", nil, []kgo.RecordHeader{header("ce_id", "e")}},
		{"empty key", "empty", []byte{}, nil},
		{"long key", "257 bytes", []byte(long), nil},
		{"bad key", "0x20", []byte("a b"), nil},
		{"key of bytes", "0xff", []byte{0xff, 0}, nil},
		{"number's key", "0x23", []byte(NumberKey), nil},
		{"long id", "event id has 300 bytes", []byte("w"), []kgo.RecordHeader{header("ce_id", strings.Repeat("i", 300))}},
		{"bad id", "event id has a byte", []byte("w"), []kgo.RecordHeader{header("ce_id", "a b")}},
		{"bad id in the envelope", "event id has a byte", []byte("w"), []kgo.RecordHeader{header("content-type", cloudEventsJSON)}},
	} {
		r := eventAt("", []byte(`{"id":"ä"}`), c.headers...)
		r.Key = c.key
		d, err := FromEvent(r)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("%s: error %v, want one naming %q", c.name, err, c.problem)
			continue
		}
		if ValidEventID(d.ID) != nil {
			t.Errorf("%s: id %q can't be logged", c.name, d.ID)
		}
		if (d.Webhook == "") != (ValidWebhookID(string(c.key)) != nil) {
			t.Errorf("%s: webhook %q", c.name, d.Webhook)
		}
		dead := d.DeadLetter("webhooks.dlq", 3, goldenDeath())
		if !reflect.DeepEqual(dead.Key, c.key) || !bytes.Equal(dead.Value, r.Value) || len(dead.Headers) < len(r.Headers) || !reflect.DeepEqual(dead.Headers[:len(r.Headers)], r.Headers) && len(r.Headers) > 0 {
			t.Errorf("%s: the dead letter is not the event's own record: %+v", c.name, dead)
		}
	}
}

// Whatever lies on the events topic: no panic, its own bytes unchanged, an id.
func TestEventKeepsItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord().Draw(t, "record")
		d, err := FromEvent(r)
		if !reflect.DeepEqual(d.Key, r.Key) || !reflect.DeepEqual(d.Value, r.Value) {
			t.Fatalf("key or value changed: %+v", d)
		}
		if valid := ValidWebhookID(string(r.Key)) == nil; valid && err == nil && d.Webhook != string(r.Key) || !valid && err == nil {
			t.Fatalf("webhook %q, error %v for key %q", d.Webhook, err, r.Key)
		}
		if ValidEventID(d.ID) != nil {
			t.Fatalf("illegal id %q", d.ID)
		}
		checkOwnHeaders(t, r.Headers, d.Headers)
	})
}

// checkOwnHeaders compares with an independent filter.
func checkOwnHeaders(t interface{ Fatalf(string, ...any) }, all, own []kgo.RecordHeader) {
	i := 0
	for _, h := range all {
		if strings.HasPrefix(h.Key, "webhook-") || strings.HasPrefix(h.Key, "__dlq.") {
			continue
		}
		if i >= len(own) || !reflect.DeepEqual(own[i], h) {
			t.Fatalf("own headers %v of %v", own, all)
		}
		i++
	}
	if i != len(own) {
		t.Fatalf("own headers %v of %v", own, all)
	}
}

func TestMovedOnceKeepsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord().Draw(t, "record")
		d, _ := FromEvent(r)
		moved := d.MovedRecord("webhooks.events", 5)
		moved.Offset = 99
		again, _ := FromEvent(moved)
		if again.ID != d.ID || again.Moved == nil || *again.Moved != d.First() || again.Redrive != d.Redrive {
			t.Fatalf("%+v became %+v", d, again)
		}
		if again.Source != (Source{"webhooks.events", 5, 99}) || !reflect.DeepEqual(again.Headers, d.Headers) && len(d.Headers) > 0 || !reflect.DeepEqual(again.Value, d.Value) {
			t.Fatalf("%+v became %+v", d, again)
		}
	})
}

func TestNewEventRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Event{
			Webhook: genWebhookID().Draw(t, "webhook"), ID: genEventID().Draw(t, "id"), Type: rapid.String().Draw(t, "type"), CESource: rapid.String().Draw(t, "source"),
			Time: genTime().Draw(t, "time"), Expiry: genTime().Draw(t, "expiry"), ContentType: "text/plain", PartitionKey: rapid.String().Draw(t, "key"),
			Value: genBytes(50).Draw(t, "value"), Redrive: rapid.SampledFrom([]string{"", "r/1"}).Draw(t, "redrive"),
			Headers: []kgo.RecordHeader{header("x", "1"), header("ce_id", "stacked"), header("webhook-attempt", "7"), header("x", "2")},
		}
		r, err := NewEventRecord("t", 2, e)
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.ValidateHeaders("event-headers", r.Headers); err != nil {
			t.Fatal(err)
		}
		d, err := FromEvent(r)
		if err != nil {
			t.Fatal(err)
		}
		e.Headers = d.Headers
		if !reflect.DeepEqual(d.Event, e) {
			t.Fatalf("got  %+v\nwant %+v", d.Event, e)
		}
		n := 0
		for _, h := range r.Headers {
			if h.Key == "ce_id" || h.Key == "webhook-attempt" {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("headers %v: want one ce_id and no webhook-attempt", r.Headers)
		}
	})
}

func TestNewEventRecordRefuses(t *testing.T) {
	ok := Event{Webhook: "w", ID: "e"}
	for _, c := range []struct {
		name, want string
		change     func(*Event)
	}{
		{"no webhook", "webhook id is empty", func(e *Event) { e.Webhook = "" }},
		{"bad webhook", "webhook id has a byte", func(e *Event) { e.Webhook = "a/b" }},
		{"no id", "no id", func(e *Event) { e.ID = "" }},
		{"long id", "300 bytes", func(e *Event) { e.ID = strings.Repeat("x", 300) }},
		{"redrive", "redrive", func(e *Event) { e.Redrive = "x" }},
		{"too large", "the most is 1047552", func(e *Event) { e.Value = make([]byte, MaxEventBytes) }},
		{"envelope says otherwise", "its envelope says other", func(e *Event) { e.Structured, e.Value = true, []byte(`{"id":"other"}`) }},
		{"envelope without id", "no id", func(e *Event) { e.Structured, e.Value = true, []byte(`{}`) }},
	} {
		e := ok
		c.change(&e)
		if _, err := NewEventRecord("t", 0, e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := NewEventRecord("t", 0, Event{Webhook: "w", ID: "e", Value: make([]byte, MaxEventBytes)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	r, err := NewEventRecord("t", 0, Event{Webhook: "w", Structured: true, Value: []byte(`{"id":"e","type":"t"}`)})
	if err != nil || len(r.Headers) != 1 || r.Headers[0].Key != "content-type" || string(r.Headers[0].Value) != cloudEventsJSON {
		t.Errorf("structured: %v, %v", r, err)
	}
}

// The largest event that is published has room left for what is added to it on its topic later.
func TestHeadroom(t *testing.T) {
	topic := strings.Repeat("t", 249) // the longest name that Kafka allows
	e := Event{Webhook: strings.Repeat("w", maxWebhookID), ID: strings.Repeat("e", maxEventID), Value: []byte{}}
	r, err := NewEventRecord(topic, 0, e)
	if err != nil {
		t.Fatal(err)
	}
	e.Value = make([]byte, MaxNewEventBytes-Size(r))
	if r, err = NewEventRecord(topic, 0, e); err != nil || Size(r) != MaxNewEventBytes {
		t.Fatalf("%d bytes, %v", Size(r), err)
	}
	d, err := FromEvent(r)
	if err != nil {
		t.Fatal(err)
	}
	d.Moved = &Source{Topic: topic, Partition: math.MaxInt32, Offset: math.MaxInt64}
	d.Redrive = strings.Repeat("r", maxRedrive-10) + "/999999999"
	if size := Size(d.MovedRecord(topic, 0)); !validRedrive(d.Redrive) || size > MaxEventBytes {
		t.Errorf("%d bytes when it is redriven and moved", size)
	}
	e.Value = append(e.Value, 0)
	if _, err := NewEventRecord(topic, 0, e); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	e.Redrive = d.Redrive
	if _, err := NewEventRecord(topic, 0, e); err != nil {
		t.Errorf("redriven: %v", err)
	}
}
