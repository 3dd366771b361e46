package producer_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/producer"
)

// Whatever is published, a dispatcher reads the same.
func TestPublishedIsRead(t *testing.T) {
	w := &world{Cluster: kafkatest.Fake(t)}
	w.topo = w.Topology(t, 4)
	w.CreateTopics(t, w.topo)
	p, err := producer.New(producer.Options{Brokers: w.Brokers, Topic: w.topo.Events()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	text := rapid.String()
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMilli(rapid.Int64Range(0, 4_102_444_800_000).Draw(t, "ms")) // to 2100
	})
	header := rapid.Custom(func(t *rapid.T) producer.Header {
		return producer.Header{
			Key:   rapid.OneOf(text, rapid.SampledFrom([]string{"ce_own", "tracestate", "webhook-attempt", "__dlq.x"})).Draw(t, "header"),
			Value: rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Just([]byte(nil))).Draw(t, "value"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		e := producer.Event{
			Webhook: rapid.StringMatching(`[A-Za-z0-9._:-]{1,256}`).Draw(rt, "webhook"),
			ID:      rapid.StringMatching(`[!-~]{1,256}`).Draw(rt, "id"),
			Type:    text.Draw(rt, "type"), Source: text.Draw(rt, "source"), OrderingKey: text.Draw(rt, "key"),
			ContentType: rapid.SampledFrom([]string{"", "text/plain", "a\r\nb"}).Draw(rt, "content type"),
			Traceparent: text.Draw(rt, "traceparent"),
			Time:        instant.Draw(rt, "time"), Expiry: instant.Draw(rt, "expiry"),
			Data:    rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Just([]byte(nil))).Draw(rt, "data"),
			Headers: rapid.SliceOfN(header, 0, 5).Draw(rt, "headers"),
		}
		published, err := p.Publish(t.Context(), e)
		if err != nil {
			rt.Fatal(err)
		}
		d, err := record.FromEvent(w.at(t, published))
		if err != nil {
			rt.Fatal(err)
		}
		if d.Webhook != e.Webhook || d.ID != e.ID || d.IDDerived || d.Structured || d.Moved != nil || d.Redrive != "" ||
			d.Type != e.Type || d.CESource != e.Source || d.PartitionKey != e.OrderingKey || d.ContentType != e.ContentType || d.Traceparent != e.Traceparent {
			rt.Errorf("got %+v", d)
		}
		if d.Time != record.At(e.Time) || d.Expiry != record.At(e.Expiry) {
			rt.Errorf("got %s, %s", d.Time, d.Expiry)
		}
		if !sameBytes(d.Value, e.Data) {
			rt.Errorf("got %q, null %t", d.Value, d.Value == nil)
		}
		own := slices.DeleteFunc(slices.Clone(e.Headers), func(h producer.Header) bool { return h.Key == "webhook-attempt" || h.Key == "__dlq.x" })
		got := d.Headers[len(d.Headers)-len(own):] // behind those of the fields
		if !slices.EqualFunc(got, own, func(a kgo.RecordHeader, b producer.Header) bool { return a.Key == b.Key && sameBytes(a.Value, b.Value) }) {
			rt.Errorf("got the headers %q", got)
		}
		if published.Partition != w.topo.PartitionFor(e.Webhook) {
			rt.Errorf("in partition %d", published.Partition)
		}
	})
}

// sameBytes: null is not empty.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
