package record

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fuzzed is a record with three headers of any name; an empty name leaves one out.
func fuzzed(key, value []byte, null bool, n1 string, v1 []byte, n2 string, v2 []byte, n3 string, v3 []byte) *kgo.Record {
	r := eventAt("", value)
	r.Topic, r.Key = "webhooks.retry-2s", key
	if null {
		r.Key, r.Value = nil, nil
	}
	for _, h := range []kgo.RecordHeader{{Key: n1, Value: v1}, {Key: n2, Value: v2}, {Key: n3, Value: v3}} {
		if h.Key != "" {
			r.Headers = append(r.Headers, h)
		}
	}
	return r
}

func addSeeds(f *testing.F) {
	for _, s := range []struct{ n1, v1, n2, v2, n3, v3 string }{
		{"ce_id", "e", "content-type", "application/json", "", ""},
		{headerAttempt, "2", headerDueAt, "2026-11-30T12:00:00.000Z", headerSource, "webhooks.events/1/7"},
		{headerAttempt, "99999999999999999999", headerDueAt, "+292278994-08-17T07:12:55.807Z", headerSource, "a/b/c"},
		{headerMoved, "webhooks.events/1/7", headerRedrive, "run/1", headerLastError, "\xff\r\n"},
		{"content-type", cloudEventsJSON, "ce_id", " ", headerDeathReason, "expired"},
		{headerLastStatus, "999", headerParkReason, "paused", headerErrorsOffset, "-1"},
	} {
		f.Add([]byte("w"), []byte(`{"id":"e","time":"2026-11-30T12:00:00Z"}`), false, s.n1, []byte(s.v1), s.n2, []byte(s.v2), s.n3, []byte(s.v3))
		f.Add([]byte("\xff"), []byte{}, true, s.n1, []byte(s.v1), s.n2, []byte(s.v2), s.n3, []byte(s.v3))
	}
}

// checkSurvives is what holds for every record, wherever it was read from.
func checkSurvives(t *testing.T, r *kgo.Record, d *Delivery, err error) {
	t.Helper()
	if !reflect.DeepEqual(d.Key, r.Key) || !reflect.DeepEqual(d.Value, r.Value) {
		t.Fatalf("key or value changed")
	}
	checkOwnHeaders(t, r.Headers, d.Headers)
	if ValidEventID(d.ID) != nil || (d.Webhook == "" && err == nil) {
		t.Fatalf("id %q, webhook %q, error %v", d.ID, d.Webhook, err)
	}
	dead := d.DeadLetter("webhooks.dlq", 1, Death{Reason: InvalidRecord})
	if !reflect.DeepEqual(dead.Key, r.Key) || !reflect.DeepEqual(dead.Value, r.Value) {
		t.Fatalf("the dead letter is not the event's own record")
	}
	checkOwnHeaders(t, dead.Headers, d.Headers)
}

func FuzzFromEvent(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte, null bool, n1 string, v1 []byte, n2 string, v2 []byte, n3 string, v3 []byte) {
		r := fuzzed(key, value, null, n1, v1, n2, v2, n3, v3)
		d, err := FromEvent(r)
		checkSurvives(t, r, d, err)
		moved := d.MovedRecord("webhooks.events", 1)
		again, _ := FromEvent(moved)
		if again.ID != d.ID || *again.Moved != d.First() {
			t.Fatalf("%+v became %+v", d, again)
		}
	})
}

func FuzzFromWaiting(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte, null bool, n1 string, v1 []byte, n2 string, v2 []byte, n3 string, v3 []byte) {
		r := fuzzed(key, value, null, n1, v1, n2, v2, n3, v3)
		d, err := FromWaiting(r)
		checkSurvives(t, r, d, err)
		if d.Attempts < 0 || d.Attempts > maxAttempts || d.LastStatus != 0 && (d.LastStatus < 100 || d.LastStatus > 999) {
			t.Fatalf("attempts %d, status %d", d.Attempts, d.LastStatus)
		}
		retry := d.RetryRecord("webhooks.retry-2s", 3)
		again, err2 := FromWaiting(retry)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(retry, again.RetryRecord("webhooks.retry-2s", 3)) {
			t.Fatalf("hop 1 %+v (%v)\nhop 2 %+v (%v)", d, err, again, err2)
		}
		checkOwnHeaders(t, retry.Headers, d.Headers)
	})
}

func FuzzParseDeadLetter(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte, null bool, n1 string, v1 []byte, n2 string, v2 []byte, n3 string, v3 []byte) {
		r := fuzzed(key, value, null, n1, v1, n2, v2, n3, v3)
		l, err := ParseDeadLetter(r)
		if _, found := last(r.Headers, headerDeathReason); !found && err == nil {
			t.Fatal("a record without a reason is no dead letter")
		}
		if !reflect.DeepEqual(l.Key, r.Key) || !reflect.DeepEqual(l.Value, r.Value) {
			t.Fatalf("key or value changed")
		}
		if view, err := json.Marshal(l); err != nil || !json.Valid(view) {
			t.Fatalf("%s, %v", view, err)
		}
	})
}
