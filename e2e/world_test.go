package e2e_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
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

// numbers is how many partition numbers the pipelines of this suite have.
const numbers = 6

// suite runs a test on the broker that REENVIO_TEST_KAFKA names: on the embedded
// one in a bubble, where time costs nothing; on Apache Kafka in real time, beside
// the others.
func suite(t *testing.T, script kafkatest.Script, test func(w *world)) {
	t.Helper()
	if !kafkatest.OnApache() {
		synctest.Test(t, func(t *testing.T) { test(newWorld(t, kafkatest.Virtual(t), script)) })
		return
	}
	t.Parallel()
	test(newWorld(t, kafkatest.Start(t), script))
}

// inBubble is for what only the embedded broker and its network can show: faults,
// and hours.
func inBubble(t *testing.T, script kafkatest.Script, test func(w *world)) {
	t.Helper()
	inBubbleOf(t, 3, script, test)
}

// inBubbleOf is a bubble with that many brokers: each that is polled for hours
// costs a little.
func inBubbleOf(t *testing.T, brokers int, script kafkatest.Script, test func(w *world), tiers ...time.Duration) {
	t.Helper()
	if kafkatest.OnApache() {
		t.Skip("it needs the embedded broker; make test runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		test(newWorld(t, kafkatest.Virtual(t, kfake.NumBrokers(brokers)), script, tiers...))
	})
}

// world is one pipeline of a test: topics of its own on a cluster, a receiver, and
// as many dispatchers as the test starts. It keeps what the history checker needs.
type world struct {
	t        *testing.T
	cluster  *kafkatest.Cluster
	topo     *topology.Topology
	group    string
	keys     *secrets.Keyset
	control  *control.Control
	client   *kgo.Client
	receiver *kafkatest.Receiver
	retry    retrytiers.Config
	rules    map[string]history.Rules
	running  map[string]func() // stops a dispatcher, by instance

	mu        sync.Mutex
	sent      []history.Sent
	incidents []history.Incident
}

func newWorld(t *testing.T, cluster *kafkatest.Cluster, script kafkatest.Script, tiers ...time.Duration) *world {
	t.Helper()
	w := &world{t: t, cluster: cluster, retry: retrytiers.Defaults(), rules: map[string]history.Rules{}, running: map[string]func(){}}
	w.topo = cluster.Topology(t, numbers, tiers...)
	if len(tiers) > 0 {
		w.retry.Tiers = nil
		for _, tier := range tiers {
			w.retry.Tiers = append(w.retry.Tiers, topology.TierName(tier))
		}
		w.retry.MaxDelay = 8 * tiers[len(tiers)-1]
	}
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
	w.client = cluster.Client(t, append(w.options(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	w.control = control.New(w.client, w.options, w.topo, w.keys)
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

// webhook makes a webhook at the receiver, and notes its rules for the checker.
func (w *world) webhook(id string, change ...func(*record.Endpoint)) {
	w.t.Helper()
	secret := signing.NewSecret()
	e := record.Endpoint{ID: id, URL: w.receiver.URL(id), Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}}}
	for _, c := range change {
		c(&e)
	}
	if _, err := w.control.WriteEndpoint(w.t.Context(), e, control.Absent); err != nil {
		w.t.Fatal(err)
	}
	w.receiver.VerifyWith(w.t, id, secret)
	w.rules[id] = history.RulesOf(e)
}

func neverPause(e *record.Endpoint) { e.AutoPauseAfter = new(int) }

// send produces events evt-<webhook>-<first> and on, and waits for Kafka.
func (w *world) send(webhook string, first, n int) {
	w.t.Helper()
	w.sendKeyed(webhook, first, n, func(int) string { return "" })
}

// sendKeyed is send with an ordering key for each event.
func (w *world) sendKeyed(webhook string, first, n int, keyOf func(i int) string) {
	w.t.Helper()
	var records []*kgo.Record
	for i := first; i < first+n; i++ {
		r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{
			Webhook: webhook, ID: fmt.Sprintf("evt-%s-%d", webhook, i), Type: "test.happened", CESource: "/e2e", ContentType: "application/json",
			PartitionKey: keyOf(i), Value: fmt.Appendf(nil, `{"webhook":%q,"n":%d}`, webhook, i),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		records = append(records, r)
	}
	w.produce(records...)
}

// produce writes records to the events topic as they are.
func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		w.sent = append(w.sent, history.Acknowledged(r))
	}
}

// newDispatcher makes a dispatcher of this pipeline.
func (w *world) newDispatcher(instance string, change ...func(*dispatcher.Options)) *dispatcher.Dispatcher {
	w.t.Helper()
	o := dispatcher.Options{
		Config: dispatcher.Defaults(), Attempts: dispatcher.DefaultAttempts(), Kafka: w.cluster.Kafka(), Topology: w.topo,
		Retry: w.retry, Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "test", Log: w.logger(), Registry: prometheus.NewRegistry(),
		Transport: dispatcher.Transport{Dial: w.cluster.Dial},
	}
	o.Kafka.InstanceID = instance
	for _, c := range change {
		c(&o)
	}
	d, err := dispatcher.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// dispatch runs a dispatcher until w.stop, or the end of the test.
func (w *world) dispatch(instance string) {
	w.t.Helper()
	d := w.newDispatcher(instance)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	w.running[instance] = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("dispatcher %s: %v", instance, err)
		}
	})
	w.t.Cleanup(w.running[instance])
}

// stop ends a dispatcher as SIGTERM does.
func (w *world) stop(instance string) {
	w.running[instance]()
	delete(w.running, instance)
}

func (w *world) stopAll() {
	for instance := range maps.Clone(w.running) {
		w.stop(instance)
	}
}

// logger shows what the dispatchers log when REENVIO_TEST_LOG is set.
func (w *world) logger() *slog.Logger {
	if os.Getenv("REENVIO_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// command has a command done, and returns its result.
func (w *world) command(webhook string, action record.Action) record.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := w.control.Do(ctx, record.Command{ID: rand.Text(), Webhook: webhook, Action: action, By: "e2e", At: record.At(time.Now())})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// until waits for a condition; in a bubble at no cost.
func (w *world) until(what string, limit time.Duration, is func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(max(50*time.Millisecond, limit/1000))
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatalf("after %s still waiting %s", limit, what)
		}
	}
}

func (w *world) state(webhook string) record.State {
	w.t.Helper()
	s, _, err := w.control.GetState(w.t.Context(), webhook)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}
