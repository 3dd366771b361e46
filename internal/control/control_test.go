package control_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// world is a cluster with topics and a keyset.
type world struct {
	*kafkatest.Cluster
	topo *topology.Topology
	keys *secrets.Keyset
}

// bubble runs test with the embedded broker in a synctest bubble: waiting takes
// no time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	keys := keyset(t)
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, kafkatest.Virtual(t), keys)) })
}

func newWorld(t *testing.T, cluster *kafkatest.Cluster, keys *secrets.Keyset) *world {
	t.Helper()
	w := &world{Cluster: cluster, topo: cluster.Topology(t, 4), keys: keys}
	w.CreateTopics(t, w.topo)
	return w
}

func keyset(t *testing.T) *secrets.Keyset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(secrets.Config{KeysetFile: path})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (w *world) options(t *testing.T) func() []kgo.Opt {
	opts, err := kafka.Options(w.Kafka(), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		t.Fatal(err)
	}
	return func() []kgo.Opt { return opts }
}

// process is a Control with clients of its own, as another process would have.
func (w *world) process(t *testing.T) *control.Control {
	opts := w.options(t)
	cl, err := kgo.NewClient(opts()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return control.New(cl, opts, w.topo, w.keys)
}

// put writes a record as another program would.
func (w *world) put(t *testing.T, topic, key string, value []byte) {
	t.Helper()
	cl := w.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	r := &kgo.Record{Topic: topic, Partition: w.topo.PartitionFor(key), Key: []byte(key), Value: value}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func endpoint(id string) record.Endpoint {
	return record.Endpoint{
		ID: id, URL: "https://Hooks.Example.com:8443/t/topsecret", UpdatedBy: "ann",
		Secrets: []record.Secret{{Value: "whsec_topsecret"}}, Headers: map[string]string{"Authorization": "Bearer topsecret"},
	}
}

// putMany writes n endpoints.
func (w *world) putMany(t *testing.T, n int) {
	t.Helper()
	cl := w.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	records := make([]*kgo.Record, n)
	for i := range records {
		id := fmt.Sprintf("w%d", i)
		records[i] = &kgo.Record{Topic: w.topo.Endpoints(), Partition: w.topo.PartitionFor(id), Key: []byte(id), Value: endpoint(id).Marshal()}
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
