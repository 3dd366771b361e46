package clients_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// topics are what lies in Kafka after a run.
type topics struct {
	w       *world
	events  []*kgo.Record
	retries []*kgo.Record
	dead    []*kgo.Record

	misrouted, withoutID int // as the dispatcher has counted
}

func (w *world) topics() *topics {
	t := &topics{w: w, events: w.read(w.topo.Events()), dead: w.read(w.topo.DLQ())}
	for _, topic := range w.topo.Retries() {
		t.retries = append(t.retries, w.read(topic)...)
	}
	t.misrouted, t.withoutID = w.counter("reenvio_misrouted_events_total"), w.counter("reenvio_events_without_id_total")
	return t
}

// of are the records of an example: by its webhook, or by their id where the key
// is what is odd.
func (x *example) of(records []*kgo.Record) []*kgo.Record {
	var own []*kgo.Record
	for _, r := range records {
		if string(r.Key) == x.webhook || slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == "ce_id" && string(h.Value) == "evt-"+x.webhook
		}) {
			own = append(own, r)
		}
	}
	return own
}

// check: every event of the example has ended as it should, byte for byte what was
// planned in every place.
func (c *topics) check(t *testing.T, x *example, answers []string) {
	t.Helper()
	for n, answer := range answers {
		want := ""
		if x.ends == refused {
			want = x.because
		}
		if answer != want {
			t.Fatalf("event %d: the client was told %q, want %q", n, answer, want)
		}
	}
	firsts, moved := c.split(x)
	requests := c.w.receiver.Of(x.webhook)
	retries, dead := x.of(c.retries), x.of(c.dead)
	if x.ends == refused || x.ends == aborted {
		if n := len(firsts) + len(moved) + len(requests) + len(retries) + len(dead); n != 0 {
			t.Fatalf("%d records, %d requests, %d retries, %d dead letters of an event that never was", len(firsts), len(requests), len(retries), len(dead))
		}
		return
	}
	if len(firsts) != len(x.Records) {
		t.Fatalf("%d events lie in the topic, want %d", len(firsts), len(x.Records))
	}
	attempts, waits, deaths := x.fails+1, x.fails, 0 // of each event
	if x.ends != delivered {
		attempts, waits, deaths = x.fails, max(0, x.fails-1), 1
	}
	if n := len(firsts); len(requests) != attempts*n || len(retries) != waits*n || len(dead) != deaths*n {
		t.Fatalf("%d requests, %d retries, %d dead letters of %d events, want %d, %d, %d of each", len(requests), len(retries), len(dead), n, attempts, waits, deaths)
	}
	for n, e := range x.Records {
		at := firsts[n]
		if e.Timestamp != 0 && at.Timestamp.UnixMilli() != e.Timestamp {
			t.Errorf("event %d has the timestamp %s", n, at.Timestamp)
		}
		sameRecord(t, "the event", at, e, e.Headers)
		if codec, want := codecs[at.Attrs.CompressionType()], x.Config["compression.type"]; want != "" && codec != want {
			t.Errorf("event %d is compressed with %s, want %s", n, codec, want)
		}
		if last := c.w.checkPlace(t, x, at, moved); last != at {
			sameRecord(t, "the moved event", last, e, e.own())
		}
		for i, q := range requests[n*attempts : (n+1)*attempts] {
			if q.Attempt != i+1 {
				t.Errorf("request %d carries the number %d", i+1, q.Attempt)
			}
			e.checkRequest(t, q, e.expectedID(at))
		}
	}
	for _, r := range retries {
		sameRecord(t, "the waiting event in "+r.Topic, r, x.Records[0], x.Records[0].own())
	}
	for _, r := range dead {
		sameRecord(t, "the dead letter", r, x.Records[0], x.Records[0].own())
		checkDeath(t, x, r, firsts[0], moved)
	}
}

// codecs by their number in the attributes of a batch.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// split are an example's events as the client wrote them, in its order, and their
// copies in the right partition.
func (c *topics) split(x *example) (firsts []*kgo.Record, moved map[string]*kgo.Record) {
	moved = map[string]*kgo.Record{}
	for _, r := range x.of(c.events) {
		if from := movedFrom(r); from != "" {
			moved[from] = r
		} else {
			firsts = append(firsts, r)
		}
	}
	return firsts, moved
}

// checkPlace returns the record that is delivered: the client's own, or its copy
// where the client's partition was the wrong one.
func (w *world) checkPlace(t *testing.T, x *example, r *kgo.Record, moved map[string]*kgo.Record) *kgo.Record {
	t.Helper()
	copied := moved[record.SourceOf(r).String()]
	if x.ends == died(record.InvalidRecord) || x.ends == died(record.TooLarge) {
		if copied != nil {
			t.Errorf("it was moved to %s, and is %s", record.SourceOf(copied), x.ends)
		}
		return r
	}
	right := w.topo.PartitionFor(x.webhook)
	switch wrong := r.Partition != right; {
	case wrong != (copied != nil):
		t.Fatalf("in partition %d, want %d, and moved %t", r.Partition, right, copied != nil)
	case x.moves == "always" && !wrong, x.moves == "never" && wrong:
		t.Errorf("in partition %d, and %d is right: want it moved %s", r.Partition, right, x.moves)
	case wrong && copied.Partition != right:
		t.Errorf("moved to partition %d, want %d", copied.Partition, right)
	case wrong:
		return copied
	}
	return r
}

// expectedID is the event's own id, or the one of the place where it lay first.
func (e event) expectedID(first *kgo.Record) string {
	if id := e.last("ce_id"); id != "" {
		return id
	}
	if strings.HasPrefix(e.last("content-type"), "application/cloudevents+json") {
		return "evt-in-the-envelope"
	}
	d, _ := record.FromEvent(first)
	return d.ID
}

// own are the headers without those that belong to Reenvio.
func (e event) own() []header {
	return slices.DeleteFunc(slices.Clone(e.Headers), func(h header) bool { return ours(h.Name) })
}

func ours(name string) bool {
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "__dlq.")
}

// sameRecord: key, value and headers are what was planned; ours, which a record
// may have beside, are left out.
func sameRecord(t *testing.T, what string, r *kgo.Record, e event, headers []header) {
	t.Helper()
	if !same(r.Key, e.Key) || !same(r.Value, e.Value) {
		t.Errorf("%s has key %s and value %s, want %s and %s", what, show(r.Key), show(r.Value), show(e.Key), show(e.Value))
	}
	var got []header
	for _, h := range r.Headers {
		if what == "the event" || !ours(h.Key) {
			got = append(got, header{h.Key, h.Value})
		}
	}
	if !slices.EqualFunc(got, headers, func(a, b header) bool { return a.Name == b.Name && same(a.Value, b.Value) }) {
		t.Errorf("%s has the headers\n%s, want\n%s", what, showHeaders(got), showHeaders(headers))
	}
}

// same: null is not empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 100:
		return fmt.Sprintf("%q and %d bytes more", b[:100], len(b)-100)
	}
	return strconv.Quote(string(b))
}

func showHeaders(headers []header) string {
	var b strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&b, "  %s: %s\n", h.Name, show(h.Value))
	}
	return b.String()
}

func (e event) checkRequest(t *testing.T, q kafkatest.Request, id string) {
	t.Helper()
	if q.Signature != nil {
		t.Errorf("the official verifier says of attempt %d: %v", q.Attempt, q.Signature)
	}
	if !bytes.Equal(q.Body, e.Value) {
		t.Errorf("attempt %d has the body %s, want %s", q.Attempt, show(q.Body), show(e.Value))
	}
	contentType, eventType := e.last("content-type"), e.last("ce_type")
	if contentType == "" || strings.Contains(contentType, "\n") {
		contentType = "application/json"
	}
	if strings.HasPrefix(contentType, "application/cloudevents+json") {
		eventType = "order.paid"
	}
	if strings.Contains(eventType, "\n") {
		eventType = "" // it can't be said in a header
	}
	for name, want := range map[string]string{
		"X-Webhook-Event-Id": id, "Webhook-Id": id, "Content-Type": contentType, "X-Webhook-Event-Type": eventType, "X-Evil": "",
	} {
		if got := q.Header.Get(name); got != want {
			t.Errorf("attempt %d has %s: %s, want %s", q.Attempt, name, got, want)
		}
	}
}

func checkDeath(t *testing.T, x *example, r, first *kgo.Record, moved map[string]*kgo.Record) {
	t.Helper()
	l, err := record.ParseDeadLetter(r)
	if err != nil {
		t.Fatal(err)
	}
	source := record.SourceOf(first)
	if copied := moved[source.String()]; copied != nil {
		source = record.SourceOf(copied)
	}
	because := l.Message
	if l.LastStatus != 0 {
		because = strconv.Itoa(l.LastStatus)
	}
	if ending(l.Reason) != x.ends || !strings.Contains(because, x.because) || l.Source != source || l.Attempts != x.fails || l.HeadersDropped != 0 {
		t.Errorf("dead letter of %s as %s after %d attempts, %q, %d headers dropped; want %s as %s after %d, %q",
			l.Source, l.Reason, l.Attempts, because, l.HeadersDropped, source, x.ends, x.fails, x.because)
	}
}

// checkCounts: the dispatcher has counted what was odd.
func (c *topics) checkCounts(t *testing.T) {
	t.Helper()
	misrouted, withoutID := 0, 0
	for _, r := range c.events {
		d, err := record.FromEvent(r)
		if d.Moved != nil {
			continue
		}
		if err == nil && c.w.topo.PartitionFor(d.Webhook) != r.Partition {
			misrouted++
		}
		if d.IDDerived {
			withoutID++
		}
	}
	if c.misrouted != misrouted || misrouted == 0 {
		t.Errorf("%d misrouted events are counted, want %d, and some", c.misrouted, misrouted)
	}
	if c.withoutID != withoutID || withoutID == 0 {
		t.Errorf("%d events without an id are counted, want %d, and some", c.withoutID, withoutID)
	}
}
