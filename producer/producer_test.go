package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
	"github.com/reenvio/reenvio/producer"
)

// world is a cluster with topics, in a synctest bubble.
type world struct {
	*kafkatest.Cluster
	topo *topology.Topology
}

func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Cluster: kafkatest.Virtual(t)}
		w.topo = w.Topology(t, 4)
		w.CreateTopics(t, w.topo)
		test(t, w)
	})
}

func (w *world) producer(t *testing.T, topic string, opts ...kgo.Opt) *producer.Producer {
	t.Helper()
	p, err := producer.New(producer.Options{
		Brokers: w.Brokers, Topic: topic,
		// The second and the third don't count.
		Client: append([]kgo.Opt{kgo.Dialer(w.Dial), kgo.ProducerBatchMaxBytes(100), kgo.RequiredAcks(kgo.LeaderAck())}, opts...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// at is the record at the place.
func (w *world) at(t *testing.T, at producer.Published) *kgo.Record {
	t.Helper()
	batch, err := kafka.NewReader(w.Client(t), at.Topic, at.Partition, at.Offset).Next(t.Context(), 0, 1<<21)
	if err != nil || len(batch.Records) == 0 {
		t.Fatalf("reading %+v: %v, %v", at, batch, err)
	}
	return batch.Records[0]
}

func TestDefaultTopic(t *testing.T) {
	if want := topology.DefaultConfig().Prefix + "events"; producer.DefaultTopic != want {
		t.Errorf("got %s, want %s", producer.DefaultTopic, want)
	}
}

func TestPublish(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		happened, expires := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		for _, webhook := range []string{"crm", "a", "b", "c", "d", "shop:eu.1_x-y"} {
			published, err := p.Publish(t.Context(), producer.Event{
				Webhook: webhook, ID: "id-" + webhook, Type: "order.paid", Source: "/orders", Time: happened, Expiry: expires,
				OrderingKey: "o1", ContentType: "text/plain", Data: []byte("body\x00\xff"), Traceparent: "00-trace",
				Headers: []producer.Header{{Key: "tracestate", Value: []byte("x=1")}, {Key: "webhook-attempt", Value: []byte("9")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := (producer.Published{ID: "id-" + webhook, Webhook: webhook, Topic: w.topo.Events(), Partition: w.topo.PartitionFor(webhook), Offset: published.Offset}); published != want {
				t.Errorf("got %+v, want %+v", published, want)
			}
			r := w.at(t, published)
			d, err := record.FromEvent(r)
			if err != nil {
				t.Fatal(err)
			}
			if d.Webhook != webhook || d.ID != "id-"+webhook || d.Type != "order.paid" || d.CESource != "/orders" || d.PartitionKey != "o1" ||
				d.ContentType != "text/plain" || string(d.Value) != "body\x00\xff" || d.Traceparent != "00-trace" ||
				d.Time != record.At(happened) || d.Expiry != record.At(expires) || d.Structured || d.Attempts != 0 {
				t.Errorf("got %+v", d)
			}
			headers := fmt.Sprintf("%s", r.Headers)
			if !strings.Contains(headers, "{tracestate x=1}") || !strings.Contains(headers, "{ce_specversion 1.0}") || strings.Contains(headers, "webhook-attempt") {
				t.Errorf("got headers %s", headers)
			}
		}
	})
}

func TestDefaults(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		published, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"})
		if err != nil {
			t.Fatal(err)
		}
		r := w.at(t, published)
		d, err := record.FromEvent(r)
		if err != nil || d.ID != published.ID || d.IDDerived || !d.Time.Equal(record.At(time.Now()).Time) || !d.Expiry.IsZero() {
			t.Errorf("got %+v, %v", d, err)
		}
		if r.Value != nil {
			t.Errorf("no data came out as %q", r.Value)
		}
		published, err = p.Publish(t.Context(), producer.Event{Webhook: "crm", Data: []byte{}})
		if err != nil {
			t.Fatal(err)
		}
		if r := w.at(t, published); r.Value == nil {
			t.Error("an empty body became no data")
		}
	})
}

func TestPublishStructured(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		e := producer.Event{
			Webhook: "crm", ContentType: "Application/CloudEvents+JSON; charset=utf-8",
			Data: []byte(`{"specversion":"1.0", "id":"in-1","type":"order.paid","source":"/orders"}`),
		}
		published, err := p.Publish(t.Context(), e)
		if err != nil || published.ID != "in-1" {
			t.Fatalf("got %+v, %v", published, err)
		}
		r := w.at(t, published)
		if !bytes.Equal(r.Value, e.Data) || len(r.Headers) != 1 || string(r.Headers[0].Value) != e.ContentType {
			t.Errorf("got %s, %s", r.Value, r.Headers)
		}
		e.ID = "other"
		if _, err := p.Publish(t.Context(), e); !errors.Is(err, producer.ErrInvalid) {
			t.Errorf("another id than the envelope's: got %v", err)
		}
		e.ID, e.Data = "", []byte(`{"specversion":"1.0"}`)
		if _, err := p.Publish(t.Context(), e); !errors.Is(err, producer.ErrInvalid) {
			t.Errorf("an envelope without id: got %v", err)
		}
	})
}

func TestPublishRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		produced := w.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
		for name, c := range map[string]struct {
			event producer.Event
			want  string
		}{
			"no webhook":      {producer.Event{}, "webhook id is empty"},
			"illegal webhook": {producer.Event{Webhook: "a/b"}, "webhook id has a byte"},
			"long webhook":    {producer.Event{Webhook: strings.Repeat("a", 257)}, "257 bytes"},
			"illegal id":      {producer.Event{Webhook: "crm", ID: "a b"}, "event id has a byte"},
			"too large":       {producer.Event{Webhook: "crm", Data: make([]byte, 1<<20)}, "the most is 1047552"},
			"large headers":   {producer.Event{Webhook: "crm", Headers: []producer.Header{{Key: "x", Value: make([]byte, 1<<20)}}}, "the most is 1047552"},
		} {
			published, err := p.Publish(t.Context(), c.event)
			if large := strings.Contains(name, "large"); errors.Is(err, producer.ErrTooLarge) != large {
				t.Errorf("%s: too large is %t", name, !large)
			}
			if !errors.Is(err, producer.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q in it", name, err, c.want)
			}
			if published.Partition != -1 || published.Offset != -1 {
				t.Errorf("%s: got %+v", name, published)
			}
		}
		if n := produced.Hits(); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// The largest event that is accepted fits, compressible or not.
func TestLargestEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		e := producer.Event{Webhook: "crm", ID: "large"}
		low, high := 0, len(data) // low is accepted, high is not
		for high-low > 1 {
			e.Data = data[:(low+high)/2]
			switch _, err := p.Publish(t.Context(), e); {
			case err == nil:
				low = len(e.Data)
			case errors.Is(err, producer.ErrInvalid):
				high = len(e.Data)
			default:
				t.Fatalf("%d bytes: %v", len(e.Data), err)
			}
		}
		if low < producer.MaxBytes-1024 {
			t.Errorf("the largest has %d bytes", low)
		}
	})
}

func TestPublishKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		var wg sync.WaitGroup
		for _, webhook := range []string{"a", "b", "c"} {
			wg.Go(func() {
				last := int64(-1)
				for range 50 {
					published, err := p.Publish(t.Context(), producer.Event{Webhook: webhook})
					if err != nil || published.Offset <= last {
						t.Errorf("got %+v, %v after offset %d", published, err, last)
					}
					last = published.Offset
				}
			})
		}
		wg.Wait()
	})
}

func TestPublishWithoutTopic(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.producer(t, "nowhere.events").Publish(ctx, producer.Event{Webhook: "crm"})
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || !strings.Contains(err.Error(), "`reenvio topics apply`") {
			t.Errorf("got %v", err)
		}
	})
}

// The broker does not answer: Publish ends with ctx, and names the id to try
// again with.
func TestPublishEndsWithContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		if _, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"}); err != nil {
			t.Fatal(err)
		}
		silent := make(chan struct{})
		defer close(silent)
		w.Fake.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.Fake.SleepControl(func() { <-silent })
			return nil, nil, false
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		published, err := p.Publish(ctx, producer.Event{Webhook: "crm"})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may have been written") {
			t.Errorf("got %v", err)
		}
		if failure := failureOf(t, err); !failure.MaybeWritten || failure.ID != published.ID || published.ID == "" || !strings.Contains(err.Error(), published.ID) {
			t.Errorf("got %+v, %v", published, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := producer.New(producer.Options{}); err == nil || !strings.Contains(err.Error(), "no brokers") {
		t.Errorf("got %v", err)
	}
	for _, brokers := range [][]string{{""}, {"127.0.0.1:9092", " "}} { // "" would be localhost to the Kafka client
		if _, err := producer.New(producer.Options{Brokers: brokers}); err == nil || !strings.Contains(err.Error(), "an empty name") {
			t.Errorf("%q: got %v", brokers, err)
		}
	}
	if _, err := producer.New(producer.Options{Brokers: []string{"127.0.0.1:9092"}, Timeout: -time.Second}); err == nil || !strings.Contains(err.Error(), "-1s") {
		t.Errorf("got %v", err)
	}
}
