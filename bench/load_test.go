package bench_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
)

// batch is how many events are produced at a time.
const batch = 500

// load is a set of topics with webhooks in it, to which events are produced.
type load struct {
	topo     *topology.Topology
	keys     *secrets.Keyset
	producer *kgo.Client
	body     []byte
}

func newLoad(b *testing.B, c *kafkatest.Cluster, to *receiver) load {
	b.Helper()
	l := load{
		topo:     c.Topology(b, 12),
		producer: c.Client(b, kgo.RecordPartitioner(kgo.ManualPartitioner())),
		body:     fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("x", max(0, *size-len(`{"text":""}`)))),
	}
	c.CreateTopics(b, l.topo)
	path := filepath.Join(b.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		b.Fatal(err)
	}
	var err error
	if l.keys, err = secrets.Load(secrets.Config{KeysetFile: path}); err != nil {
		b.Fatal(err)
	}
	var records []*kgo.Record
	for i := range *webhooks {
		records = append(records, l.endpoint(b, name(i), to.base))
	}
	l.send(b, records)
	return l
}

// feed produces all events, round robin over the webhooks, and waits whenever
// backlog of them are not delivered yet.
func (l load) feed(b *testing.B, m *meter, backlog int) {
	b.Helper()
	for sent := 0; sent < *events; sent += batch {
		for sent+batch-int(m.seen.Load()) > backlog {
			select {
			case <-m.progress:
			case <-b.Context().Done():
				return
			}
		}
		var records []*kgo.Record
		for i := sent; i < min(sent+batch, *events); i++ {
			records = append(records, l.event(b, name(i%*webhooks), i))
		}
		l.send(b, records)
	}
}

func (l load) send(b *testing.B, records []*kgo.Record) {
	b.Helper()
	if err := l.producer.ProduceSync(b.Context(), records...).FirstErr(); err != nil {
		b.Errorf("producing the load: %v", err)
	}
}

// parked counts the events that a dispatcher had to put aside.
func (l load) parked(b *testing.B) (n int) {
	b.Helper()
	for p := range l.topo.Partitions() {
		_, err := kafka.ReadAll(b.Context(), l.producer, l.topo.Parked(), p, func(*kgo.Record) error {
			n++
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return n
}

func name(i int) string { return fmt.Sprintf("bench-%d", i) }

func (l load) endpoint(b *testing.B, id, url string) *kgo.Record {
	b.Helper()
	e := record.Endpoint{ID: id, URL: url + id, Secrets: []record.Secret{{Value: signing.NewSecret(), CreatedAt: record.At(time.Now())}}}
	if err := l.keys.SealEndpoint(&e); err != nil {
		b.Fatal(err)
	}
	return &kgo.Record{Topic: l.topo.Endpoints(), Partition: l.topo.PartitionFor(id), Key: []byte(id), Value: e.Marshal()}
}

func (l load) event(b *testing.B, webhook string, i int) *kgo.Record {
	b.Helper()
	r, err := record.NewEventRecord(l.topo.Events(), l.topo.PartitionFor(webhook), record.Event{
		Webhook: webhook, ID: fmt.Sprintf("evt-%d", i), Type: "bench.event", CESource: "/bench", ContentType: "application/json", Value: l.body,
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}
