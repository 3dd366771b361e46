package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
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
