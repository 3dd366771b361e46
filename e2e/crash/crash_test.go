package crash_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// TestCrash: 20,000 events to 200 webhooks, three in ten fail at first, and 20
// times a dispatcher is killed at a random moment while another one runs.
func TestCrash(t *testing.T) {
	const (
		healthy   = 194
		perHook   = 100
		producers = 4
	)
	w := newWorld(t, 12, failSome)
	plan := drawPlan(random(t))
	var webhooks []string
	for i := range healthy {
		webhooks = append(webhooks, fmt.Sprintf("w%d", i))
		w.Webhook(webhooks[i], procs.NeverPauses)
	}
	down := []string{"down-0", "down-1", "down-2"} // paused after ten failures
	doomed := []string{"doomed-0", "doomed-1", "doomed-2"}
	for _, id := range down {
		w.Receiver.Answer(id, kafkatest.Always(http.StatusInternalServerError))
		w.Webhook(id, func(*record.Endpoint) {})
	}
	for _, id := range doomed {
		w.Receiver.Answer(id, kafkatest.Always(http.StatusBadGateway))
		w.Webhook(id, func(e *record.Endpoint) { procs.NeverPauses(e); e.MaxAttempts = 2 })
	}
	webhooks = append(append(webhooks, down...), doomed...)

	var producing sync.WaitGroup
	for i := range producers {
		share := webhooks[i*len(webhooks)/producers : (i+1)*len(webhooks)/producers]
		producing.Go(func() { w.produce(share, perHook, plan.length()) })
	}
	running := map[string]*procs.Process{"a": w.Start("a"), "b": w.Start("b")}
	for i, k := range plan {
		w.Pause(k.after)
		k.kill(w, running[k.instance])
		w.Pause(k.down)
		running[k.instance] = w.Start(k.instance)
		if i == len(plan)/2 {
			producing.Go(func() { w.heal(down[:2]) })
		}
	}
	producing.Wait()
	w.finish(down[2])
}

// failSome: three in ten events fail at first, a third of them twice, and an
// answer takes up to 20 ms, so that some are under way at any moment.
func failSome(q *kafkatest.Request) kafkatest.Response {
	failures := 1
	if kafkatest.Chosen("twice "+q.EventID, 1.0/3) {
		failures = 2
	}
	return kafkatest.After(rand.N(20*time.Millisecond), kafkatest.FailSome(0.3, failures))(q)
}

// kill is one of a plan.
type kill struct {
	after    time.Duration // since the last one was started again
	instance string
	inside   bool          // a transaction
	down     time.Duration // until it is started again
}

// kill ends the process at once, or at the next end of a transaction of its. A
// transaction takes tens of milliseconds on Apache Kafka, and random moments meet
// one often enough; on the embedded broker it takes one, and they never would.
func (k kill) kill(w *world, p *procs.Process) {
	if k.inside && w.Cluster.Fake != nil {
		w.killInside(p)
		return
	}
	p.Kill()
}

type plan []kill

// drawPlan: most of the dead are started again at once, as supervisors do; some
// after a while; and some so late that the other one has taken over.
func drawPlan(rnd *rand.Rand) plan {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rnd.Int64N(int64(most-least)))
	}
	downs := make([]time.Duration, 20)
	for i := range 6 {
		downs[i] = between(time.Second, 3*time.Second)
		if i < 2 {
			downs[i] = between(11*time.Second, 14*time.Second)
		}
	}
	rnd.Shuffle(len(downs), func(i, j int) { downs[i], downs[j] = downs[j], downs[i] })
	var p plan
	for _, down := range downs {
		p = append(p, kill{
			after:    between(0, 3*time.Second),
			instance: []string{"a", "b"}[rnd.IntN(2)],
			inside:   rnd.IntN(3) == 0,
			down:     down,
		})
	}
	return p
}

func (p plan) length() (total time.Duration) {
	for _, k := range p {
		total += k.after + k.down
	}
	return total
}

// random is seeded anew each time, or by REENVIO_TEST_SEED.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("REENVIO_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("REENVIO_TEST_SEED: %v", err)
		}
	}
	t.Logf("REENVIO_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// produce sends so many events to each webhook, evenly over a time.
func (w *world) produce(webhooks []string, each int, over time.Duration) {
	began := time.Now()
	for i := range each {
		select {
		case <-time.After(time.Until(began.Add(over * time.Duration(i) / time.Duration(each)))):
		case <-w.Ctx.Done():
			return
		}
		if err := w.Send(webhooks...); err != nil {
			w.Fail(err)
			return
		}
	}
}

// heal mends endpoints whose webhooks have been paused, and has them resumed.
func (w *world) heal(webhooks []string) {
	for _, id := range webhooks {
		w.Receiver.Answer(id, failSome)
		result, err := w.Control.Do(w.Ctx, record.Command{Webhook: id, Action: record.ActionResume, By: "test"})
		if err != nil || result.Result != record.ResultDone {
			w.Fail(fmt.Errorf("resuming %s: %s %w", id, result.Result, err))
			return
		}
	}
}
