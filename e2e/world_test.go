package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// world is one pipeline of a test: topics of its own on a cluster, a receiver, and
// as many dispatchers as the test starts.
type world struct {
	t        *testing.T
	cluster  *kafkatest.Cluster
	topo     *topology.Topology
	keys     *secrets.Keyset
	control  *control.Control
	client   *kgo.Client
	receiver *kafkatest.Receiver
	retry    retrytiers.Config
}

func newWorld(t *testing.T, cluster *kafkatest.Cluster, numbers int32, script kafkatest.Script) *world {
	t.Helper()
	w := &world{t: t, cluster: cluster, retry: retrytiers.Defaults()}
	w.topo = cluster.Topology(t, numbers)
	cluster.CreateTopics(t, w.topo)
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.keys, err = secrets.Load(secrets.Config{KeysetFile: path}); err != nil {
		t.Fatal(err)
	}
	w.client = cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.control = control.New(w.client, func() []kgo.Opt { return w.options() }, w.topo, w.keys)
	w.receiver = cluster.Receiver(t, script)
	return w
}

func (w *world) options() []kgo.Opt {
	opts, err := kafka.Options(w.cluster.Kafka(), slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	return opts
}

// webhook makes a webhook at the receiver.
func (w *world) webhook(id string, change ...func(*record.Endpoint)) {
	w.t.Helper()
	secret := signing.NewSecret()
	e := record.Endpoint{ID: id, URL: w.receiver.URL(id), Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}}}
	for _, c := range change {
		c(&e)
	}
	if _, err := w.control.WriteEndpoint(w.t.Context(), e, -1); err != nil {
		w.t.Fatal(err)
	}
	w.receiver.VerifyWith(w.t, id, secret)
}

// send produces n events, evt-<webhook>-<i> from first on, and waits for Kafka.
func (w *world) send(webhook string, first, n int) {
	w.t.Helper()
	var records []*kgo.Record
	for i := first; i < first+n; i++ {
		r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{
			Webhook: webhook, ID: fmt.Sprintf("evt-%s-%d", webhook, i), Type: "test.happened", CESource: "/e2e", ContentType: "application/json",
			Value: fmt.Appendf(nil, `{"webhook":%q,"n":%d}`, webhook, i),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		records = append(records, r)
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// dispatch runs a dispatcher until stop is called, or the test ends.
func (w *world) dispatch(instance string, change ...func(*dispatcher.Options)) (stop func()) {
	w.t.Helper()
	o := dispatcher.Options{
		Config: dispatcher.Defaults(), Attempts: dispatcher.DefaultAttempts(), Kafka: w.cluster.Kafka(), Topology: w.topo,
		Retry: w.retry, Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "test", Log: logger(), Registry: prometheus.NewRegistry(),
		Transport: dispatcher.Transport{Dial: w.cluster.Dial},
	}
	o.Config.Group = w.topo.Prefix() + "dispatcher"
	o.Kafka.InstanceID = instance
	for _, c := range change {
		c(&o)
	}
	d, err := dispatcher.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("dispatcher %s: %v", instance, err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func logger() *slog.Logger {
	if os.Getenv("REENVIO_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
