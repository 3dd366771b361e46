package procs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
)

// World is one pipeline: topics of its own on a cluster, a receiver, dispatcher
// processes, and all that is needed to prove its history.
type World struct {
	T        *testing.T
	Ctx      context.Context // ends with a cause when the test can't go on
	Fail     context.CancelCauseFunc
	Cluster  *kafkatest.Cluster
	Topo     *topology.Topology
	Group    string
	Control  *control.Control
	Client   *kgo.Client
	Receiver *kafkatest.Receiver
	Attempts *Attempts
	Rules    map[string]history.Rules
	// Admin is where an instance's admin port is; without it, somewhere.
	Admin map[string]string
	// OnEnd is told when a process ends by itself, and how.
	OnEnd func(p *Process, how string)

	dir        string
	keysetFile string
	configs    *configs

	mu        sync.Mutex
	lives     int
	processes []*Process
	sent      []history.Sent
	next      map[string]int // of the events of a webhook
	crashes   []Crash
}

// New makes a pipeline, without a dispatcher. limit ends a test that waits for what
// does not come.
func New(t *testing.T, cluster *kafkatest.Cluster, numbers int32, script kafkatest.Script, limit time.Duration) *World {
	t.Helper()
	w := &World{T: t, Cluster: cluster, dir: t.ArtifactDir(), next: map[string]int{}, Rules: map[string]history.Rules{}}
	ctx, stop := context.WithTimeoutCause(t.Context(), limit, errors.New("it took longer than the test's limit"))
	t.Cleanup(stop)
	w.Ctx, w.Fail = context.WithCancelCause(ctx)
	w.OnEnd = func(p *Process, how string) {
		w.Fail(fmt.Errorf("dispatcher %s (process %d) ended by itself: %s", p.Instance, p.cmd.Process.Pid, how))
	}
	w.Topo = cluster.Topology(t, numbers)
	w.Group = w.Topo.Prefix() + "dispatcher"
	cluster.CreateTopics(t, w.Topo)

	w.keysetFile = filepath.Join(w.dir, "keyset.json")
	if err := secrets.Generate(w.keysetFile); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(secrets.Config{KeysetFile: w.keysetFile})
	if err != nil {
		t.Fatal(err)
	}
	w.Client = cluster.Client(t, append(w.Options(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	w.Control = control.New(w.Client, w.Options, w.Topo, keys)
	w.Receiver = cluster.Receiver(t, script)
	w.Attempts = watchAttempts(w, cluster.Client(t, append(w.Options(), following(w.Topo, w.Topo.Attempts())...)...))
	w.configs = watchConfigs(w, cluster.Client(t, append(w.Options(), following(w.Topo, w.Topo.Endpoints())...)...))
	t.Cleanup(func() {
		last := syscall.SIGKILL
		if t.Failed() {
			w.tell()
			last = syscall.SIGQUIT // its stacks go to its log, which `go test -artifacts` keeps
		}
		for _, p := range w.Processes() {
			_ = p.Signal(syscall.SIGCONT)
			p.end(last)
		}
	})
	return w
}

// Options are those of a client of the cluster.
func (w *World) Options() []kgo.Opt {
	opts, err := kafka.Options(w.Cluster.Kafka(), slog.New(slog.DiscardHandler))
	if err != nil {
		w.T.Fatal(err)
	}
	return opts
}

// Webhook makes a webhook at the receiver, and tells the history its rules. It
// returns the configuration, in clear.
func (w *World) Webhook(id string, change func(*record.Endpoint)) record.Endpoint {
	w.T.Helper()
	e, err := w.MakeWebhook(id, change)
	if err != nil {
		w.T.Fatal(err)
	}
	return e
}

// MakeWebhook is Webhook for many goroutines at once.
func (w *World) MakeWebhook(id string, change func(*record.Endpoint)) (record.Endpoint, error) {
	secret := signing.NewSecret()
	e := record.Endpoint{ID: id, URL: w.Receiver.URL(id), Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}}}
	change(&e)
	if _, err := w.Control.WriteEndpoint(w.Ctx, e, control.Absent); err != nil {
		return e, err
	}
	w.Receiver.VerifyWith(w.T, id, secret)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Rules[id] = history.RulesOf(e)
	return e, nil
}

// NeverPauses is a webhook without automatic pauses.
func NeverPauses(e *record.Endpoint) { e.AutoPauseAfter = new(int) }

// WebhookOfEach makes a webhook of each number, and returns their ids by number.
func (w *World) WebhookOfEach() []string {
	w.T.Helper()
	ids := make([]string, w.Topo.Partitions())
	for i, left := 0, len(ids); left > 0; i++ {
		id := fmt.Sprintf("w%d", i)
		if p := w.Topo.PartitionFor(id); ids[p] == "" {
			ids[p] = id
			left--
			w.Webhook(id, NeverPauses)
		}
	}
	return ids
}

// Send produces the next event of each of the webhooks named, and waits for Kafka.
func (w *World) Send(webhooks ...string) error {
	var records []*kgo.Record
	for _, webhook := range webhooks {
		w.mu.Lock()
		n := w.next[webhook]
		w.next[webhook]++
		w.mu.Unlock()
		r, err := w.event(webhook, webhook, n)
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	return w.produce(records)
}

// SendCopy produces the n-th event of a webhook once more, to it or to another one.
func (w *World) SendCopy(webhook, of string, n int) error {
	r, err := w.event(webhook, of, n)
	if err != nil {
		return err
	}
	return w.produce([]*kgo.Record{r})
}

// Next is the number of the next event of a webhook.
func (w *World) Next(webhook string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next[webhook]
}

func (w *World) event(webhook, of string, n int) (*kgo.Record, error) {
	return record.NewEventRecord(w.Topo.Events(), w.Topo.PartitionFor(webhook), record.Event{
		Webhook: webhook, ID: fmt.Sprintf("%s-%d", of, n), Type: "test.happened", CESource: "/e2e",
		ContentType: "application/json", PartitionKey: []string{"", "a", "b"}[n%3], Value: fmt.Appendf(nil, `{"webhook":%q,"n":%d}`, of, n),
	})
}

// produce sends again what a broker that dies has answered with UNKNOWN_SERVER_ERROR, as
// an upstream service does: it may have been written, and then the copy is a duplicate.
func (w *World) produce(records []*kgo.Record) error {
	for len(records) > 0 {
		var unsure []*kgo.Record
		for _, result := range w.Client.ProduceSync(w.Ctx, records...) {
			switch r := result.Record; {
			case result.Err == nil:
				w.mu.Lock()
				w.sent = append(w.sent, history.Acknowledged(r))
				w.mu.Unlock()
			case errors.Is(result.Err, kerr.UnknownServerError):
				unsure = append(unsure, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers})
			default:
				return fmt.Errorf("sending events: %w", result.Err)
			}
		}
		records = unsure
	}
	return nil
}

// Stream sends one event to each webhook, again and again, until stop.
func (w *World) Stream(every time.Duration, webhooks []string) (stop func()) {
	ctx, cancel := context.WithCancel(w.Ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := w.Send(webhooks...); err != nil {
				w.Fail(err)
				return
			}
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-w.Ctx.Done(): // what is on its way to brokers that are gone can't be taken back
		}
	}
}

// Must ends the test when a wait was in vain, with the reason of the world's end
// where there is one.
func (w *World) Must(err error, what string) {
	w.T.Helper()
	if err == nil {
		return
	}
	if cause := context.Cause(w.Ctx); cause != nil {
		err = cause
	}
	w.T.Fatalf("%s: %v", what, err)
}

// Until asks again and again, until the answer is yes. An error is an answer, too:
// a cluster that is being hurt has many.
func (w *World) Until(what string, yes func() (bool, error)) {
	w.T.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := yes()
		if ok && err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-w.Ctx.Done():
			w.T.Fatalf("%s: %v; the last answer was %t, %v", what, context.Cause(w.Ctx), ok, err)
		}
	}
}

// Pause waits: the moments of kills are what tests draw.
func (w *World) Pause(d time.Duration) {
	w.T.Helper()
	select {
	case <-time.After(d):
	case <-w.Ctx.Done():
		w.Must(w.Ctx.Err(), "waiting")
	}
}
