package clients_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/e2e/history"
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

// limit ends a test that waits for what does not come.
const limit = 3 * time.Minute

// world is one pipeline: topics of its own on a cluster, a dispatcher, a receiver,
// and what is needed to prove its history.
type world struct {
	t        *testing.T
	ctx      context.Context
	cluster  *kafkatest.Cluster
	topo     *topology.Topology
	group    string
	keys     *secrets.Keyset
	control  *control.Control
	client   *kgo.Client
	receiver *kafkatest.Receiver
	metrics  *prometheus.Registry

	mu    sync.Mutex
	rules map[string]history.Rules
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster := kafkatest.Start(t)
	w := &world{t: t, cluster: cluster, metrics: prometheus.NewRegistry(), rules: map[string]history.Rules{}}
	ctx, stop := context.WithTimeoutCause(t.Context(), limit, errors.New("it took longer than the test's limit"))
	t.Cleanup(stop)
	w.ctx = ctx
	w.topo = cluster.Topology(t, 6)
	w.group = w.topo.Prefix() + "dispatcher"
	cluster.CreateTopics(t, w.topo)
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.keys, err = secrets.Load(secrets.Config{KeysetFile: path}); err != nil {
		t.Fatal(err)
	}
	options := func() []kgo.Opt {
		opts, err := kafka.Options(cluster.Kafka(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return opts
	}
	w.client = cluster.Client(t, options()...)
	w.control = control.New(w.client, options, w.topo, w.keys)
	w.receiver = cluster.Receiver(t, kafkatest.Always(http.StatusOK))
	return w
}

// webhook makes the webhook of an example, whose endpoint fails as often as that says.
func (w *world) webhook(x *example) error {
	secret := signing.NewSecret()
	e := record.Endpoint{
		ID: x.webhook, URL: w.receiver.URL(x.webhook), MaxAttempts: x.most, AutoPauseAfter: new(int),
		Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}},
	}
	if _, err := w.control.WriteEndpoint(w.ctx, e, control.Absent); err != nil {
		return err
	}
	w.receiver.VerifyWith(w.t, x.webhook, secret)
	w.receiver.Answer(x.webhook, kafkatest.FailFirst(x.fails))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules[x.webhook] = history.Rules{MaxAttempts: x.most, AutoPauseAfter: history.NeverPause}
	return nil
}

// dispatch runs a dispatcher until the function that it returns is called.
func (w *world) dispatch() (stop func()) {
	w.t.Helper()
	o := dispatcher.Options{
		Config: dispatcher.Defaults(), Attempts: dispatcher.DefaultAttempts(), Kafka: w.cluster.Kafka(), Topology: w.topo,
		Retry: retrytiers.Defaults(), Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "test", Log: slog.New(slog.NewTextHandler(quietly(w.t), nil)), Registry: w.metrics,
	}
	d, err := dispatcher.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the dispatcher: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// quietly is where the dispatcher logs: hundreds of lines, which only a person asks for.
func quietly(t *testing.T) io.Writer {
	if testing.Verbose() {
		return t.Output()
	}
	return io.Discard
}

// awaitIdle waits until the group has committed all that there is.
func (w *world) awaitIdle() {
	w.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := w.left()
		if err != nil {
			w.t.Fatal(err)
		}
		if left == "" {
			return
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("%v; not finished: %s", context.Cause(w.ctx), left)
		}
	}
}

// left names a record that is not finished yet.
func (w *world) left() (string, error) {
	commits, err := kadm.NewClient(w.client).FetchOffsets(w.ctx, w.group)
	if err != nil {
		return "", err
	}
	for _, topic := range w.topo.Owned() {
		for p := range w.topo.Partitions() {
			from := kafka.Earliest
			if c, ok := commits.Lookup(topic, p); ok && c.At >= 0 {
				from = c.At
			}
			batch, err := kafka.NewReader(w.client, topic, p, from).Next(w.ctx, 0, 1<<20)
			if err != nil {
				return "", err
			}
			if len(batch.Records) > 0 {
				return record.SourceOf(batch.Records[0]).String(), nil
			}
		}
	}
	return "", nil
}

// counter is what a counter of the dispatcher says.
func (w *world) counter(name string) int {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}

// read reads a topic whole, in the order of each partition.
func (w *world) read(topic string) []*kgo.Record {
	w.t.Helper()
	var all []*kgo.Record
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.ctx, w.client, topic, p, func(r *kgo.Record) error {
			all = append(all, r)
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}
