package record

import (
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/schemas/schematest"
)

// A delivery that goes through the delay topics comes back as it went in: its own
// bytes to the byte, its progress with its error as text; and what is written at
// the second hop is what was written at the first.
func TestWaitingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDelivery().Draw(t, "delivery")
		before := *d
		first := d.RetryRecord("webhooks.retry-2s", 4)
		if !reflect.DeepEqual(*d, before) {
			t.Fatalf("writing changed the delivery")
		}
		if first.Topic != "webhooks.retry-2s" || first.Partition != 4 || !first.Timestamp.IsZero() {
			t.Fatalf("record %+v", first)
		}
		got, err := FromWaiting(first)
		if (err != nil) != (d.Webhook == "" || lastHasBadID(d)) {
			t.Fatalf("error %v for %+v", err, d)
		}
		want := *d
		want.LastError = text(d.LastError, maxErrorText)
		want.Repaired = got.Repaired
		want.Headers, got.Headers = normal(want.Headers), normal(got.Headers)
		if !reflect.DeepEqual(*got, want) {
			t.Fatalf("got  %+v\nwant %+v", *got, want)
		}
		for _, name := range got.Repaired {
			if name != headerProducedAt || !d.ProducedAt.IsZero() {
				t.Fatalf("%s was repaired", name)
			}
		}
		second := got.RetryRecord("webhooks.retry-2s", 4)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("hop 1 %+v\nhop 2 %+v", first, second)
		}
		parked := got.ParkedRecord("webhooks.parked", 4, ParkBehind)
		back, _ := FromWaiting(parked)
		if back.Parked != ParkBehind {
			t.Fatalf("parked for %q", back.Parked)
		}
		if again := back.RetryRecord("webhooks.retry-2s", 4); !reflect.DeepEqual(first, again) {
			t.Fatalf("after parking %+v, want %+v", again, first)
		}
	})
}

func normal(headers []kgo.RecordHeader) []kgo.RecordHeader {
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// lastHasBadID says whether the event was read with an id that is not legal.
func lastHasBadID(d *Delivery) bool {
	e := Event{Headers: d.Headers, Value: d.Value}
	e.readAttributes()
	return e.ID != "" && ValidEventID(e.ID) != nil
}

func TestWaitingHeadersFollowTheSchema(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDelivery().Draw(t, "delivery")
		// What the producer wrote may be anything; the schema is about ours.
		d.Headers = []kgo.RecordHeader{header("ce_id", "e"), header("x", "\xff")}
		if d.ProducedAt.IsZero() {
			d.ProducedAt = At(goldenProduced)
		}
		if d.DueAt.IsZero() {
			d.DueAt = At(goldenProduced)
		}
		if err := schematest.ValidateHeaders("retry-headers", d.RetryRecord("t", 0).Headers); err != nil {
			t.Fatal(err)
		}
		if err := schematest.ValidateHeaders("parked-headers", d.ParkedRecord("t", 0, ParkOverflow).Headers); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWaitingRepairs(t *testing.T) {
	base := goldenDelivery(t)
	place := Source{"webhooks.retry-4s", 3, 5}
	for _, c := range []struct {
		header, value string // value "-": the header is missing
		noted         bool
		check         func(*Delivery) bool
	}{
		{headerAttempt, "-", true, func(d *Delivery) bool { return d.Attempts == 0 }},
		{headerAttempt, "", true, func(d *Delivery) bool { return d.Attempts == 0 }},
		{headerAttempt, "x", true, func(d *Delivery) bool { return d.Attempts == 0 }},
		{headerAttempt, "-1", true, func(d *Delivery) bool { return d.Attempts == 0 }},
		{headerAttempt, "\x05", true, func(d *Delivery) bool { return d.Attempts == 0 }},
		{headerAttempt, "128", false, func(d *Delivery) bool { return d.Attempts == 128 }},
		{headerAttempt, "99999999999999999999", true, func(d *Delivery) bool { return d.Attempts == maxAttempts }},
		{headerDueAt, "-", false, func(d *Delivery) bool { return d.DueAt.IsZero() }},
		{headerDueAt, "tomorrow", true, func(d *Delivery) bool { return d.DueAt.IsZero() }},
		{headerDueAt, "9999-12-31T23:59:59.999Z", false, func(d *Delivery) bool { return d.DueAt.Equal(lastTime) }},
		{headerDueAt, strings.Repeat("9", 5000), true, func(d *Delivery) bool { return d.DueAt.IsZero() }},
		{headerFirstAttemptAt, "0", true, func(d *Delivery) bool { return d.FirstAttemptAt.IsZero() }},
		{headerProducedAt, "-", true, func(d *Delivery) bool { return d.ProducedAt.String() == "2026-11-30T12:00:00.250Z" }},
		{headerSource, "-", true, func(d *Delivery) bool { return d.Source == place }},
		{headerSource, "events/1", true, func(d *Delivery) bool { return d.Source == place }},
		{headerLastStatus, "0", true, func(d *Delivery) bool { return d.LastStatus == 0 }},
		{headerLastStatus, "20000", true, func(d *Delivery) bool { return d.LastStatus == 0 }},
		{headerLastError, "\xff\n", false, func(d *Delivery) bool { return d.LastError == `\xff\n` }},
		{headerParkReason, "whim", false, func(d *Delivery) bool { return d.Parked == "" }},
		{headerMoved, "whim", false, func(d *Delivery) bool { return d.Moved == nil }},
	} {
		r := base.RetryRecord(place.Topic, place.Partition)
		r.Offset, r.Timestamp = place.Offset, goldenProduced
		var headers []kgo.RecordHeader
		for _, h := range r.Headers {
			if h.Key != c.header {
				headers = append(headers, h)
			}
		}
		if c.value != "-" {
			headers = append(headers, header(c.header, c.value))
		}
		r.Headers = headers
		d, err := FromWaiting(r)
		if err != nil || !c.check(d) {
			t.Errorf("%s %q: %+v, %v", c.header, c.value, d, err)
		}
		if noted := len(d.Repaired) == 1 && d.Repaired[0] == c.header; noted != c.noted || len(d.Repaired) > 1 {
			t.Errorf("%s %q: repaired %v", c.header, c.value, d.Repaired)
		}
	}
}

// Of a stacked header the last counts, and one is written.
func TestWaitingReplacesStackedHeaders(t *testing.T) {
	r := goldenDelivery(t).RetryRecord("webhooks.retry-4s", 3)
	r.Headers = append([]kgo.RecordHeader{header(headerAttempt, "7"), header("webhook-old", "x")}, r.Headers...)
	d, err := FromWaiting(r)
	if err != nil || d.Attempts != 2 {
		t.Fatalf("attempts %d, %v", d.Attempts, err)
	}
	if again := d.RetryRecord("webhooks.retry-4s", 3); len(again.Headers) != len(r.Headers)-2 {
		t.Errorf("headers %v", again.Headers)
	}
}

func TestWaitingInvalidKeepsTheKey(t *testing.T) {
	r := goldenDelivery(t).RetryRecord("webhooks.retry-4s", 3)
	r.Key = []byte{0xff}
	d, err := FromWaiting(r)
	if err == nil || d.Webhook != "" || d.Attempts != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	if dead := d.DeadLetter("webhooks.dlq", 3, goldenDeath()); !reflect.DeepEqual(dead.Key, r.Key) {
		t.Errorf("key %q", dead.Key)
	}
}

// What we add is far below the 128 KiB of headroom.
func TestWaitingFitsBehindAnyEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDelivery().Draw(t, "delivery")
		own := Size(&kgo.Record{Key: d.Key, Value: d.Value, Headers: d.Headers})
		death := genDeath().Draw(t, "death")
		for _, r := range []*kgo.Record{d.ParkedRecord("t", 0, ParkOverflow), d.DeadLetter("t", 0, death)} {
			if added := Size(r) - own; added > 8<<10 {
				t.Fatalf("%d bytes were added", added)
			}
		}
	})
}
