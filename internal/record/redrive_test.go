package record

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// Whatever was dead comes back as its producer wrote it, byte for byte, in a new chain under the same id.
func TestRedriveIsTheOriginalEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original := genRecord().Draw(t, "original")
		first, invalid := FromEvent(original)
		checkRedrive(t, original, first, invalid, genDeath().Draw(t, "death"), rapid.IntRange(0, 3).Draw(t, "hops"))
	})
}

func FuzzRedriveIsTheOriginalEvent(f *testing.F) {
	f.Add([]byte("w"), []byte("{}"), "ce_id", []byte("e1"), "webhook-redrive", []byte("run/4"), int64(7))
	f.Add([]byte("w"), []byte(nil), "content-type", []byte("application/cloudevents+json"), "__dlq.errors.topic", []byte("x"), int64(0))
	f.Add([]byte("w/"), []byte("\xff"), "webhook-moved", []byte("t/1/2"), "webhook-dlq-reason", []byte("expired"), int64(1))
	f.Fuzz(func(t *testing.T, key, value []byte, name1 string, value1 []byte, name2 string, value2 []byte, offset int64) {
		if offset < 0 {
			return
		}
		original := &kgo.Record{
			Topic: "webhooks.events", Partition: 3, Offset: offset, Key: key, Value: value,
			Headers: []kgo.RecordHeader{{Key: name1, Value: value1}, {Key: name2, Value: value2}, {Key: name1, Value: value2}},
		}
		first, invalid := FromEvent(original)
		checkRedrive(t, original, first, invalid, goldenDeath(), 1)
	})
}

type failer interface{ Fatalf(string, ...any) }

func checkRedrive(t failer, original *kgo.Record, d *Delivery, invalid error, death Death, hops int) {
	d.Attempts, d.LastError, d.LastStatus = 5, "status: HTTP 503", 503
	for range hops { // through delay topics, as one that failed
		var err error
		if d, err = FromWaiting(d.RetryRecord("webhooks.retry-2s", 3)); (err == nil) != (invalid == nil) {
			t.Fatalf("after a hop: %v, before: %v", err, invalid)
		}
	}
	letter, err := ParseDeadLetter(d.DeadLetter("webhooks.dlq", 3, death))
	if err != nil {
		t.Fatalf("%v", err)
	}
	r, err := letter.RedriveRecord("webhooks.events", 5, "run-1")
	if (err == nil) != (invalid == nil) {
		t.Fatalf("%v, while the original was: %v", err, invalid)
	}
	if !sameBytes(r.Key, original.Key) || !sameBytes(r.Value, original.Value) {
		t.Fatalf("key %q, value %q; the original's are %q, %q", r.Key, r.Value, original.Key, original.Value)
	}
	if r.Topic != "webhooks.events" || r.Partition != 5 || !r.Timestamp.IsZero() {
		t.Fatalf("it goes to %s/%d with timestamp %v", r.Topic, r.Partition, r.Timestamp)
	}
	if own, want := normal(ownHeaders(r.Headers)), normal(ownHeaders(original.Headers)); !reflect.DeepEqual(own, want) {
		t.Fatalf("headers %q, want %q", own, want)
	}
	for _, h := range r.Headers[len(ownHeaders(r.Headers)):] {
		if h.Key != headerRedrive && h.Key != headerMoved {
			t.Fatalf("a header of ours is left: %s", h.Key)
		}
	}
	again, _ := FromEvent(r)
	if again.ID != d.ID || again.Webhook != d.Webhook || again.Attempts != 0 || again.LastError != "" || again.Redrives() != d.Redrives()+1 || again.RedriveRun() != "run-1" {
		t.Fatalf("read again it is %+v, dead it was %+v", again, d)
	}
}

// sameBytes: nothing is not the same as empty.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestRedriveCountsOn(t *testing.T) {
	for redrive, want := range map[string]string{"": "r/1", "a/1": "r/2", "a/4": "r/5", "a/999999999": "r/999999999"} {
		d, err := FromEvent(eventAt("w", nil, header("ce_id", "e"), header("webhook-redrive", redrive)))
		if err != nil {
			t.Fatal(err)
		}
		letter, _ := ParseDeadLetter(d.DeadLetter("t", 0, goldenDeath()))
		r, err := letter.RedriveRecord("t", 0, "r")
		if got := lastText(r.Headers, headerRedrive); err != nil || got != want {
			t.Errorf("after %q: %q, %v, want %q", redrive, got, err, want)
		}
	}
}

func TestARedrivenEventDiesWithItsRedrive(t *testing.T) {
	d, _ := FromEvent(eventAt("w", nil, header("ce_id", "e"), header("webhook-redrive", "r/2")))
	d, _ = FromWaiting(d.RetryRecord("webhooks.retry-2s", 0))
	d, _ = FromWaiting(d.ParkedRecord("webhooks.parked", 0, ParkPaused))
	for _, r := range []*kgo.Record{d.DeadLetter("t", 0, goldenDeath()), d.MinimalDeadLetter("t", 0, goldenDeath()), d.ValuelessDeadLetter("t", 0, goldenDeath())} {
		if l, err := ParseDeadLetter(r); err != nil || l.Redrive != "r/2" || l.Redrives() != 2 || l.RedriveRun() != "r" {
			t.Errorf("redrive %q, %v", l.Redrive, err)
		}
	}
}

// An id that was made from the place of the first record must not change with a new record.
func TestRedriveKeepsADerivedID(t *testing.T) {
	d, err := FromEvent(eventAt("w", []byte("v")))
	if err != nil || !d.IDDerived {
		t.Fatalf("%+v, %v", d, err)
	}
	letter, _ := ParseDeadLetter(d.DeadLetter("t", 0, goldenDeath()))
	r, err := letter.RedriveRecord("webhooks.events", 0, "r")
	if err != nil {
		t.Fatal(err)
	}
	r.Offset = 999_999
	if again, err := FromEvent(r); err != nil || again.ID != d.ID || again.First() != d.Source {
		t.Errorf("%+v, %v; want the id %s", again, err, d.ID)
	}
}

func TestRedriveOfWhatCanNotBeDelivered(t *testing.T) {
	for name, r := range map[string]*kgo.Record{
		"no key":  {Value: []byte("v")},
		"bad key": {Key: []byte("a/b")},
		"bad id":  eventAt("w", nil, header("ce_id", "with blank")),
	} {
		d, _ := FromEvent(r)
		letter, _ := ParseDeadLetter(d.DeadLetter("t", 0, goldenDeath()))
		var invalid *InvalidError
		if _, err := letter.RedriveRecord("t", 0, "r"); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedriveRuns(t *testing.T) {
	for _, run := range []string{"r", "redrive-20261130T120000Z-abcdefgh", strings.Repeat("r", 246)} {
		if err := ValidRedriveRun(run); err != nil {
			t.Errorf("%s: %v", run, err)
		}
		if !validRedrive(run + "/" + strconv.Itoa(maxRedriveCount)) {
			t.Errorf("%s can't be written", run)
		}
	}
	for _, run := range []string{"", "a/b", "a b", "é", strings.Repeat("r", 247)} {
		if err := ValidRedriveRun(run); err == nil {
			t.Errorf("%q was accepted", run)
		}
	}
}

func TestValuelessDeadLetter(t *testing.T) {
	d, _ := FromEvent(eventAt("w", bytes.Repeat([]byte("v"), 5000), header("ce_id", "e")))
	r := d.ValuelessDeadLetter("t", 1, goldenDeath())
	l, err := ParseDeadLetter(r)
	if err != nil || l.Value != nil || l.ValueDropped != 5000 || l.ID != "e" || string(l.Key) != "w" || l.Reason != goldenDeath().Reason || r.Partition != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	view, err := l.MarshalJSON()
	if err != nil || !strings.Contains(string(view), `"webhook_value_dropped":5000`) {
		t.Errorf("%s, %v", view, err)
	}
	if l, _ := ParseDeadLetter(d.DeadLetter("t", 1, goldenDeath())); l.ValueDropped != 0 {
		t.Errorf("a whole letter says that %d bytes were dropped", l.ValueDropped)
	}
}
