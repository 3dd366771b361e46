package bench

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
)

// load is a set of topics with webhooks in it, and events that wait for delivery.
type load struct {
	topo *topology.Topology
	keys *secrets.Keyset
}

func newLoad(b *testing.B, c *kafkatest.Cluster, to *receiver, webhooks, events, size int) load {
	b.Helper()
	l := load{topo: c.Topology(b, 12)}
	c.CreateTopics(b, l.topo)
	path := filepath.Join(b.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		b.Fatal(err)
	}
	var err error
	if l.keys, err = secrets.Load(secrets.Config{KeysetFile: path}); err != nil {
		b.Fatal(err)
	}
	producer := c.Client(b, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1<<20))
	var records []*kgo.Record
	for i := range webhooks {
		records = append(records, l.endpoint(b, name(i), to.base))
	}
	// Round robin, so that the lanes of all webhooks are as long.
	body := append([]byte(`{"text":"`), append(bytes.Repeat([]byte("x"), max(0, size-11)), `"}`...)...)
	for i := range events {
		records = append(records, l.event(b, name(i%webhooks), i, body))
	}
	if err := producer.ProduceSync(b.Context(), records...).FirstErr(); err != nil {
		b.Fatalf("producing the load: %v", err)
	}
	return l
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

func (l load) event(b *testing.B, webhook string, i int, body []byte) *kgo.Record {
	b.Helper()
	r, err := record.NewEventRecord(l.topo.Events(), l.topo.PartitionFor(webhook), record.Event{
		Webhook: webhook, ID: fmt.Sprintf("evt-%d", i), Type: "bench.event", CESource: "/bench", ContentType: "application/json", Value: body,
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}
