package crash_test

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

// world is one pipeline: topics of its own on a cluster, a receiver, dispatcher
// processes, and all that is needed to prove its history.
type world struct {
	t          *testing.T
	ctx        context.Context // ends with a cause when the test can't go on
	fail       context.CancelCauseFunc
	cluster    *kafkatest.Cluster
	topo       *topology.Topology
	group      string
	dir        string
	keysetFile string
	control    *control.Control
	client     *kgo.Client
	receiver   *kafkatest.Receiver
	attempts   *attempts
	lives      int
	processes  []*process

	mu      sync.Mutex
	sent    []history.Sent
	next    map[string]int // of the events of a webhook
	crashes []crash
	rules   map[string]history.Rules
}

// limit ends a test that waits for what does not come.
const limit = 3 * time.Minute

func newWorld(t *testing.T, numbers int32, script kafkatest.Script) *world {
	t.Helper()
	cluster := kafkatest.Start(t)
	w := &world{t: t, cluster: cluster, dir: t.ArtifactDir(), next: map[string]int{}, rules: map[string]history.Rules{}}
	ctx, stop := context.WithTimeoutCause(t.Context(), limit, errors.New("it took longer than the test's limit"))
	t.Cleanup(stop)
	w.ctx, w.fail = context.WithCancelCause(ctx)
	w.topo = cluster.Topology(t, numbers)
	w.group = w.topo.Prefix() + "dispatcher"
	cluster.CreateTopics(t, w.topo)

	w.keysetFile = filepath.Join(w.dir, "keyset.json")
	if err := secrets.Generate(w.keysetFile); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(secrets.Config{KeysetFile: w.keysetFile})
	if err != nil {
		t.Fatal(err)
	}
	options := func() []kgo.Opt {
		opts, err := kafka.Options(cluster.Kafka(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return opts
	}
	w.client = cluster.Client(t, append(options(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	w.control = control.New(w.client, options, w.topo, keys)
	w.receiver = cluster.Receiver(t, script)
	w.attempts = watchAttempts(w, cluster.Client(t, append(options(), attemptsOf(w.topo)...)...))
	t.Cleanup(func() {
		last := syscall.SIGKILL
		if t.Failed() {
			w.tell()
			last = syscall.SIGQUIT // its stacks go to its log, which `go test -artifacts` keeps
		}
		for _, p := range w.processes {
			_ = p.signal(syscall.SIGCONT)
			p.end(last)
		}
	})
	return w
}

// webhook makes a webhook at the receiver, and tells the history its rules.
func (w *world) webhook(id string, change func(*record.Endpoint)) {
	w.t.Helper()
	secret := signing.NewSecret()
	e := record.Endpoint{ID: id, URL: w.receiver.URL(id), Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}}}
	change(&e)
	if _, err := w.control.WriteEndpoint(w.ctx, e, -1); err != nil {
		w.t.Fatal(err)
	}
	w.receiver.VerifyWith(w.t, id, secret)
	rules := history.Rules{MaxAttempts: e.MaxAttempts}
	if e.AutoPauseAfterOr() == 0 {
		rules.AutoPauseAfter = history.NeverPause
	}
	w.rules[id] = rules
}

// neverPauses is a webhook without automatic pauses.
func neverPauses(e *record.Endpoint) { e.AutoPauseAfter = new(int) }

// webhookOfEach makes a webhook of each number, and returns their ids by number.
func (w *world) webhookOfEach() []string {
	w.t.Helper()
	ids := make([]string, w.topo.Partitions())
	for i, left := 0, len(ids); left > 0; i++ {
		id := fmt.Sprintf("w%d", i)
		if p := w.topo.PartitionFor(id); ids[p] == "" {
			ids[p] = id
			left--
			w.webhook(id, neverPauses)
		}
	}
	return ids
}

// send produces the next event of each of the webhooks named, and waits for Kafka.
func (w *world) send(webhooks ...string) error {
	w.mu.Lock()
	var records []*kgo.Record
	for _, webhook := range webhooks {
		r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{
			Webhook: webhook, ID: fmt.Sprintf("%s-%d", webhook, w.next[webhook]), Type: "crash.tested", CESource: "/e2e/crash",
			ContentType: "application/json", Value: fmt.Appendf(nil, `{"webhook":%q,"n":%d}`, webhook, w.next[webhook]),
		})
		if err != nil {
			w.mu.Unlock()
			return err
		}
		w.next[webhook]++
		records = append(records, r)
	}
	w.mu.Unlock()
	if err := w.client.ProduceSync(w.ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("sending events: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		w.sent = append(w.sent, history.Acknowledged(r))
	}
	return nil
}

// stream sends one event to each webhook, again and again, until stop.
func (w *world) stream(every time.Duration, webhooks []string) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
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
			if err := w.send(webhooks...); err != nil {
				w.fail(err)
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// must ends the test when a wait was in vain, with the reason of the world's end
// where there is one.
func (w *world) must(err error, what string) {
	w.t.Helper()
	if err == nil {
		return
	}
	if cause := context.Cause(w.ctx); cause != nil {
		err = cause
	}
	w.t.Fatalf("%s: %v", what, err)
}

// until asks again and again, until the answer is yes. An error is an answer, too:
// a cluster that is being hurt has many.
func (w *world) until(what string, yes func() (bool, error)) {
	w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := yes()
		if ok && err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			w.t.Fatalf("%s: %v; the last answer was %t, %v", what, context.Cause(w.ctx), ok, err)
		}
	}
}

// pause waits: the moments of kills are what these tests draw.
func (w *world) pause(d time.Duration) {
	w.t.Helper()
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
		w.must(w.ctx.Err(), "waiting for the next kill")
	}
}
