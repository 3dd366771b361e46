package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// world is one pipeline inside a synctest bubble: topics on an embedded broker, a
// receiver, and the dispatchers that a test starts. All time in it is the bubble's.
type world struct {
	t        *testing.T
	cluster  *kafkatest.Cluster
	topo     *topology.Topology
	keys     *secrets.Keyset
	control  *control.Control
	client   *kgo.Client
	receiver *kafkatest.Receiver
}

// inWorld runs f in a bubble of its own. The topics have the default tiers.
func inWorld(t *testing.T, numbers int32, script kafkatest.Script, f func(t *testing.T, w *world), opts ...kfake.Opt) {
	t.Helper()
	keys := testKeys(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cluster: kafkatest.Virtual(t, opts...), keys: keys}
		w.topo = w.cluster.Topology(t, numbers)
		w.cluster.CreateTopics(t, w.topo)
		w.client = w.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(record.MaxEventBytes))
		w.control = control.New(w.client, w.options, w.topo, keys)
		w.receiver = w.cluster.Receiver(t, script)
		f(t, w)
	})
}

var testKeyset = sync.OnceValues(func() (*secrets.Keyset, error) {
	dir, err := os.MkdirTemp("", "dispatcher")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := dir + "/keyset.json"
	if err := secrets.Generate(path); err != nil {
		return nil, err
	}
	return secrets.Load(secrets.Config{KeysetFile: path})
})

func testKeys(t *testing.T) *secrets.Keyset {
	t.Helper()
	keys, err := testKeyset()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (w *world) options() []kgo.Opt {
	opts, err := kafka.Options(w.cluster.Kafka(), quiet())
	if err != nil {
		w.t.Fatal(err)
	}
	return opts
}

// quiet drops the log; REENVIO_TEST_LOG=1 shows it.
func quiet() *slog.Logger {
	if os.Getenv("REENVIO_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// endpoint is the clear configuration of a webhook at the receiver.
func (w *world) endpoint(id string) record.Endpoint {
	return record.Endpoint{ID: id, URL: w.receiver.URL(id), Secrets: []record.Secret{{Value: signing.NewSecret(), CreatedAt: record.At(time.Now())}}}
}

// webhook makes a webhook at the receiver.
func (w *world) webhook(id string, change ...func(*record.Endpoint)) {
	w.t.Helper()
	e := w.endpoint(id)
	for _, c := range change {
		c(&e)
	}
	if _, err := w.control.WriteEndpoint(w.t.Context(), e, -1); err != nil {
		w.t.Fatal(err)
	}
}

// neverPauses takes the automatic pause out of a test about something else.
func neverPauses(e *record.Endpoint) {
	zero := 0
	e.AutoPauseAfter = &zero
}

// event is the record of event i of a webhook.
func (w *world) event(webhook string, i int) *kgo.Record {
	w.t.Helper()
	r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{
		Webhook: webhook, ID: eventID(webhook, i), Type: "test.happened", CESource: "/test", ContentType: "application/json",
		Value: fmt.Appendf(nil, `{"n":%d}`, i),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func eventID(webhook string, i int) string { return fmt.Sprintf("%s-%d", webhook, i) }

// send produces the events first to first+n-1 of a webhook.
func (w *world) send(webhook string, first, n int) {
	w.t.Helper()
	var records []*kgo.Record
	for i := first; i < first+n; i++ {
		records = append(records, w.event(webhook, i))
	}
	w.produce(records...)
}

func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// do has a command done by the owner.
func (w *world) do(webhook string, action record.Action, change ...func(*record.Command)) record.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := record.Command{Webhook: webhook, Action: action, By: "test"}
	for _, f := range change {
		f(&c)
	}
	result, err := w.control.Do(ctx, c)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// process is one running dispatcher, on a host of its own.
type process struct {
	w     *world
	d     *Dispatcher
	host  vnet.Host
	stop  context.CancelFunc // as SIGTERM does
	ended chan struct{}
	err   error // of Run, once ended is closed

	registry *prometheus.Registry
}

// start runs a dispatcher. Its end with an error fails the test, unless the test has waited for it.
func (w *world) start(instance string, change ...func(*Options)) *process {
	w.t.Helper()
	p := w.startQuietly(instance, change...)
	w.t.Cleanup(func() {
		if p.err != nil {
			w.t.Errorf("dispatcher %s ended: %v", instance, p.err)
		}
	})
	return p
}

// startQuietly is start for a dispatcher that is expected to end with an error.
func (w *world) startQuietly(instance string, change ...func(*Options)) *process {
	w.t.Helper()
	host, registry := w.cluster.Net.Host(instance), prometheus.NewRegistry()
	o := Options{
		Config: Defaults(), Attempts: DefaultAttempts(), Kafka: w.cluster.Kafka(), Topology: w.topo,
		Retry: retrytiers.Defaults(), Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "test", Log: quiet().With("instance", instance), Registry: registry,
		Transport: Transport{Dial: host.Dial},
	}
	o.Config.Group = w.topo.Prefix() + "dispatcher"
	o.Kafka.InstanceID, o.Kafka.Dial = instance, host.Dial
	for _, c := range change {
		c(&o)
	}
	d, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{w: w, d: d, host: host, stop: cancel, ended: make(chan struct{}), registry: registry}
	go func() {
		defer close(p.ended)
		p.err = d.Run(ctx)
	}()
	w.t.Cleanup(func() {
		host.Heal() // of what it had been cut off from
		cancel()
		<-p.ended
	})
	return p
}

// wait returns what Run returned.
func (p *process) wait() error {
	<-p.ended
	return p.err
}

// kill is SIGKILL as others see it: nothing of the process is heard any more.
func (p *process) kill() { p.host.Cut() }

// owns waits until the dispatcher has started the numbers.
func (p *process) owns(numbers ...int32) {
	p.w.t.Helper()
	for _, number := range numbers {
		p.w.until(fmt.Sprintf("%s has started number %d", p.d.instance, number), func() bool { return p.has(number) })
	}
}

func (p *process) has(number int32) bool {
	n := p.number(number)
	return n != nil && n.started.Load()
}

// number is the life of a number in the dispatcher's hands, or nil.
func (p *process) number(number int32) *number {
	p.d.ownership.mu.Lock()
	defer p.d.ownership.mu.Unlock()
	return p.d.ownership.lives[number]
}

// look runs f in the goroutine of a number that has started.
func (p *process) look(number int32, f func(n *number)) {
	p.w.t.Helper()
	n := p.number(number)
	if n == nil {
		p.w.t.Fatalf("%s does not own number %d", p.d.instance, number)
	}
	looked := make(chan struct{})
	n.inbox.post(func() { f(n); close(looked) })
	select {
	case <-looked:
	case <-n.done:
		p.w.t.Fatalf("number %d of %s has ended", number, p.d.instance)
	}
}

// patience is how long until waits: longer than any timeout that plays a part.
const patience = 5 * time.Minute

// until waits until something is so, and fails the test when it never is. It looks
// less often the longer it takes: some questions read whole topics.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for began := time.Now(); !so(); {
		waited := time.Since(began)
		if waited > patience {
			w.t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(min(max(waited/20, 5*time.Millisecond), 200*time.Millisecond))
	}
}

// change writes a webhook's configuration anew.
func (w *world) change(id string, change func(*record.Endpoint)) {
	w.t.Helper()
	e, etag, err := w.control.GetEndpoint(w.t.Context(), id)
	if err == nil {
		e, err = w.keys.OpenEndpoint(e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	change(&e)
	if _, err := w.control.WriteEndpoint(w.t.Context(), e, etag); err != nil {
		w.t.Fatal(err)
	}
}

// delete takes a webhook away.
func (w *world) delete(id string) {
	w.t.Helper()
	_, etag, err := w.control.GetEndpoint(w.t.Context(), id)
	if err == nil {
		err = w.control.DeleteEndpoint(w.t.Context(), id, etag)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// metric is the sum of a metric over all its labels that have one of the values.
func (p *process) metric(name string, values ...string) (sum float64) {
	p.w.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != namespace+"_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			wanted := len(values) == 0
			for _, l := range m.GetLabel() {
				wanted = wanted || slices.Contains(values, l.GetValue())
			}
			if wanted {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
