package chaos_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// sort is some webhooks that are alike: "flaky-0", "flaky-1" and so on.
type sort struct {
	name   string
	count  int
	every  time.Duration // an event
	change func(*record.Endpoint)
	// meddle does things to one of them while events flow, until ctx ends.
	meddle func(w *world, ctx context.Context, id string, rnd *rand.Rand)
}

// sorts of webhooks; how they answer is in answers. A line here is all that another
// kind of traffic takes. Beside them there is one of each number that is always well:
// its silence is the number's.
var sorts = []sort{
	{name: "flaky", count: 8, every: time.Second},
	{name: "down", count: 4, every: 700 * time.Millisecond, meddle: (*world).mendAndBreak},
	{name: "dying", count: 2, every: 2 * time.Second, change: func(e *record.Endpoint) { e.AutoPauseAfter, e.MaxAttempts = new(int), 2 }, meddle: (*world).redrive},
	{name: "hangs", count: 3, every: 2 * time.Second, change: func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Second) }},
	{name: "slow", count: 3, every: 4 * time.Second, change: func(e *record.Endpoint) { e.Timeout = record.Duration(10 * time.Second) }},
	{name: "toggled", count: 4, every: 500 * time.Millisecond, meddle: (*world).toggle},
	{name: "held", count: 3, every: 500 * time.Millisecond, change: func(e *record.Endpoint) { e.Tenant = tenant }, meddle: (*world).hold},
	{name: "changed", count: 3, every: 500 * time.Millisecond, meddle: (*world).configure},
	{name: "strict", count: 2, every: 700 * time.Millisecond, change: ordered(record.OrderStrict)},
	{name: "keyed", count: 2, every: 300 * time.Millisecond, change: ordered(record.OrderKey)},
	{name: "strictkeyed", count: 2, every: 300 * time.Millisecond, change: ordered(record.OrderStrictKey)},
	{name: "unordered", count: 2, every: 300 * time.Millisecond, change: ordered(record.OrderNone)},
	{name: "deleted", count: 4, every: 500 * time.Millisecond, meddle: (*world).delete},
}

const tenant = "t"

func ordered(o record.Ordering) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.Ordering = o }
}

// answers is the receiver's script.
func answers(q *kafkatest.Request) kafkatest.Response {
	name, _, _ := strings.Cut(q.Webhook, "-")
	quick := rand.N(20 * time.Millisecond)
	switch name {
	case "down":
		return kafkatest.Response{Status: http.StatusInternalServerError, Delay: quick}
	case "dying":
		return kafkatest.Response{Status: http.StatusBadGateway, Delay: quick}
	case "hangs":
		return kafkatest.Response{Status: http.StatusOK, Hang: q.Attempt == 1 && kafkatest.Chosen("hang "+q.EventID, 0.2)}
	case "slow":
		return kafkatest.Response{Status: http.StatusOK, Delay: time.Second + rand.N(2*time.Second)}
	case "flaky", "deleted", "changed", "strict", "keyed", "strictkeyed", "unordered":
		return kafkatest.After(quick, kafkatest.FailSome(0.3, 1+len(q.EventID)%2))(q)
	default:
		return kafkatest.Response{Status: http.StatusOK, Delay: quick}
	}
}

// traffic is everything that goes on beside the faults.
type traffic struct {
	end    context.CancelFunc
	ending sync.WaitGroup
}

// stop returns when nobody sends or meddles any more.
func (t *traffic) stop() {
	t.end()
	t.ending.Wait()
}

func (w *world) traffic() *traffic {
	w.T.Helper()
	ctx, cancel := context.WithCancel(w.Ctx)
	t := &traffic{end: cancel}
	for _, id := range w.WebhookOfEach() {
		t.ending.Go(func() { w.send(ctx, id, 250*time.Millisecond) })
	}
	for _, s := range sorts {
		for i := range s.count {
			id := fmt.Sprintf("%s-%d", s.name, i)
			w.Webhook(id, func(e *record.Endpoint) {
				if s.change != nil {
					s.change(e)
				}
			})
			t.ending.Go(func() { w.send(ctx, id, s.every) })
			if s.meddle != nil {
				t.ending.Go(func() { s.meddle(w, ctx, id, w.random(id)) })
			}
		}
	}
	return t
}

// random is a webhook's own, so that what is done to one does not depend on when
// something was done to another.
func (w *world) random(id string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) send(ctx context.Context, id string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for sleep(ctx, 0) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := w.Send(id); err != nil {
			w.Fail(err)
			return
		}
	}
}

// sleep is false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func between(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rnd.Int64N(int64(most-least)))
}

// patience is how long a command or a change may take before it is given up: an
// outage can be longer, and what is pending is done when it ends.
const patience = 20 * time.Second

// command has one done. It may stay pending; only a refusal is wrong.
func (w *world) command(c record.Command) {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	c.By = "chaos"
	result, err := w.Control.Do(ctx, c)
	if err == nil && result.Result != record.ResultDone {
		w.T.Errorf("%s of %s: %s %s", c.Action, c.Webhook, result.Result, result.Detail)
	}
}

// mendAndBreak mends an endpoint that is down and has its webhook resumed, and breaks
// it again.
func (w *world) mendAndBreak(ctx context.Context, id string, rnd *rand.Rand) {
	for sleep(ctx, between(rnd, 8*time.Second, 20*time.Second)) {
		w.Receiver.Answer(id, func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Status: http.StatusOK} })
		w.command(record.Command{Webhook: id, Action: record.ActionResume})
		if !sleep(ctx, between(rnd, 2*time.Second, 8*time.Second)) {
			return
		}
		w.Receiver.Answer(id, answers)
	}
}

// toggle pauses and resumes by hand; sometimes twice.
func (w *world) toggle(ctx context.Context, id string, rnd *rand.Rand) {
	for sleep(ctx, between(rnd, time.Second, 8*time.Second)) {
		action := record.ActionPause
		if rnd.IntN(2) == 0 {
			action = record.ActionResume
		}
		for range 1 + rnd.IntN(2) {
			w.command(record.Command{Webhook: id, Action: action})
		}
	}
}

// hold holds and releases one webhook, its tenant, or everything; everything for a
// short time only.
func (w *world) hold(ctx context.Context, id string, rnd *rand.Rand) {
	for sleep(ctx, between(rnd, 2*time.Second, 10*time.Second)) {
		length := between(rnd, time.Second, 5*time.Second)
		switch rnd.IntN(4) {
		case 0:
			w.numbers(record.ActionHold, record.HoldTenant, tenant)
			sleep(ctx, length)
			w.numbers(record.ActionRelease, record.HoldTenant, tenant)
		case 1:
			w.numbers(record.ActionHold, record.HoldAll, "")
			sleep(ctx, length/2)
			w.numbers(record.ActionRelease, record.HoldAll, "")
		default:
			w.command(record.Command{Webhook: id, Action: record.ActionHold, Scope: record.HoldWebhook, Value: id})
			sleep(ctx, length)
			w.command(record.Command{Webhook: id, Action: record.ActionRelease, Scope: record.HoldWebhook, Value: id})
		}
	}
}

// numbers has a command done by the owners of all numbers; true: all have.
func (w *world) numbers(action record.Action, scope record.HoldScope, value string) bool {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	results, err := w.Control.DoNumbers(ctx, record.Command{Action: action, Scope: scope, Value: value, By: "chaos"})
	all := err == nil
	for _, r := range results {
		all = all && !r.Pending
	}
	return all
}

// configure changes what the next attempt must use: a secret is added before the one
// that the receiver knows, or taken away; the timeout; a header.
func (w *world) configure(ctx context.Context, id string, rnd *rand.Rand) {
	for sleep(ctx, between(rnd, time.Second, 5*time.Second)) {
		changing, cancel := context.WithTimeout(w.Ctx, patience)
		what, timeout := rnd.IntN(3), between(rnd, 5*time.Second, 30*time.Second)
		_, _, _ = w.Control.ChangeEndpoint(changing, id, func(e *record.Endpoint) error {
			switch last := len(e.Secrets) - 1; {
			case what == 0 && last == 0:
				e.Secrets = append([]record.Secret{{Value: signing.NewSecret(), CreatedAt: record.At(time.Now())}}, e.Secrets...)
			case what == 0:
				e.Secrets = e.Secrets[last:]
			case what == 1:
				e.Timeout = record.Duration(timeout)
			default:
				e.Headers = map[string]string{"X-Changed": timeout.String()}
			}
			return nil
		})
		cancel()
	}
}

// delete takes the webhook away, with whatever it has waiting.
func (w *world) delete(ctx context.Context, id string, rnd *rand.Rand) {
	if !sleep(ctx, between(rnd, 10*time.Second, 40*time.Second)) {
		return
	}
	for sleep(ctx, 0) {
		deleting, cancel := context.WithTimeout(w.Ctx, patience)
		_, etag, err := w.Control.GetEndpoint(deleting, id)
		if err == nil {
			err = w.Control.DeleteEndpoint(deleting, id, etag)
		}
		cancel()
		if err == nil || errors.Is(err, control.ErrNotFound) {
			return
		}
	}
}

// redrive sends dead events again, three times in a run at most: each time there are
// more.
func (w *world) redrive(ctx context.Context, id string, rnd *rand.Rand) {
	for range 3 {
		if !sleep(ctx, between(rnd, 10*time.Second, 30*time.Second)) {
			return
		}
		redriving, cancel := context.WithTimeout(w.Ctx, patience)
		letters := dlqconsumer.New(w.Client, w.Topo)
		plan, err := letters.Plan(redriving, dlqconsumer.RedriveOptions{Filter: dlqconsumer.Filter{Webhooks: []string{id}}}, noProgress)
		if err == nil && plan.Ready > 0 {
			_, err = w.redriving(redriving, letters, plan)
		}
		cancel()
		_ = err // an outage: the next one takes what is left
	}
}

func (w *world) redriving(ctx context.Context, letters *dlqconsumer.Reader, plan *dlqconsumer.Plan) (dlqconsumer.Sent, error) {
	writer, err := dlqconsumer.NewWriter(w.Options())
	if err != nil {
		return dlqconsumer.Sent{}, err
	}
	defer writer.Close()
	sent, err := letters.Redrive(ctx, plan, writer, noProgress)
	return sent, cmp.Or(err, ctx.Err())
}

func noProgress(string, int64, int64) {}
