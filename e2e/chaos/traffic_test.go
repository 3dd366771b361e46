package chaos_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
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

// sorts of webhooks; how they answer is in answer. A line here is all that another
// kind of traffic takes. Beside them there is one of each number that is always well:
// its silence is the number's.
var sorts = []sort{
	{name: "flaky", count: 8, every: time.Second},
	{name: "down", count: 4, every: 700 * time.Millisecond, meddle: (*world).mendAndBreak},
	{name: "dying", count: 2, every: 2 * time.Second, change: all(procs.NeverPauses, twoAttempts), meddle: (*world).redrive},
	{name: "strictdying", count: 1, every: 4 * time.Second, change: all(procs.NeverPauses, twoAttempts, ordered(record.OrderStrict)), meddle: (*world).redrive},
	{name: "hangs", count: 3, every: 2 * time.Second, change: patient(2 * time.Second)},
	{name: "slow", count: 3, every: 4 * time.Second, change: patient(10 * time.Second)},
	{name: "slowest", count: 2, every: 6 * time.Second, change: patient(30 * time.Second)}, // a stop has to wait for it
	{name: "toggled", count: 4, every: 500 * time.Millisecond, meddle: (*world).toggle},
	{name: "stricttoggled", count: 2, every: 700 * time.Millisecond, change: ordered(record.OrderStrict), meddle: (*world).toggle},
	{name: "held", count: 3, every: 500 * time.Millisecond, change: func(e *record.Endpoint) { e.Tenant = tenant }, meddle: (*world).hold},
	{name: "strictheld", count: 1, every: 500 * time.Millisecond, change: all(ordered(record.OrderStrictKey), func(e *record.Endpoint) { e.Tenant = tenant }), meddle: (*world).hold},
	{name: "changed", count: len(changedOrders), every: 500 * time.Millisecond, change: procs.NeverPauses, meddle: (*world).configure},
	{name: "strict", count: 3, every: 700 * time.Millisecond, change: ordered(record.OrderStrict)},
	{name: "keyed", count: 2, every: 300 * time.Millisecond, change: ordered(record.OrderKey)},
	{name: "strictkeyed", count: 3, every: 300 * time.Millisecond, change: ordered(record.OrderStrictKey)},
	{name: "unordered", count: 2, every: 300 * time.Millisecond, change: all(ordered(record.OrderNone), func(e *record.Endpoint) { e.MaxInFlight = 3 })},
	{name: "copied", count: 2, every: 500 * time.Millisecond, meddle: (*world).copy},
	{name: "strictcopied", count: 2, every: 700 * time.Millisecond, change: ordered(record.OrderStrict), meddle: (*world).copy},
	{name: "keycopied", count: 2, every: 500 * time.Millisecond, change: ordered(record.OrderKey), meddle: (*world).copy},
	{name: "deleted", count: 4, every: 500 * time.Millisecond, change: procs.NeverPauses, meddle: (*world).delete},
}

const tenant = "t"

func ordered(o record.Ordering) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.Ordering = o }
}

func patient(d time.Duration) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.Timeout = record.Duration(d) }
}

func twoAttempts(e *record.Endpoint) { e.MaxAttempts = 2 }

func all(changes ...func(*record.Endpoint)) func(*record.Endpoint) {
	return func(e *record.Endpoint) {
		for _, change := range changes {
			if change != nil {
				change(e)
			}
		}
	}
}

// answer is the receiver's script.
func (w *world) answer(q *kafkatest.Request) kafkatest.Response {
	name, _, _ := strings.Cut(q.Webhook, "-")
	quick := rand.N(20 * time.Millisecond)
	if w.healed.Load() && name != "dying" {
		return kafkatest.Response{Status: http.StatusOK, Delay: quick}
	}
	switch name {
	case "down":
		return kafkatest.Response{Status: http.StatusInternalServerError, Delay: quick}
	case "dying", "strictdying":
		return kafkatest.Response{Status: http.StatusBadGateway, Delay: quick}
	case "hangs":
		return kafkatest.Response{Status: http.StatusOK, Hang: q.Attempt == 1 && kafkatest.Chosen("hang "+q.EventID, 0.2)}
	case "slow":
		return kafkatest.Response{Status: http.StatusOK, Delay: time.Second + rand.N(2*time.Second)}
	case "slowest":
		return kafkatest.Response{Status: http.StatusOK, Delay: 3*time.Second + rand.N(8*time.Second)}
	case "unordered": // several are in flight
		return kafkatest.After(100*time.Millisecond+rand.N(time.Second), kafkatest.FailSome(0.2, 1))(q)
	case "keyed", "strictkeyed":
		return kafkatest.After(rand.N(500*time.Millisecond), kafkatest.FailSome(0.2, 1+len(q.EventID)%2))(q)
	case "flaky", "deleted", "changed", "strict", "copied", "strictcopied", "keycopied", "stricttoggled", "strictheld":
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
	beats := w.WebhookOfEach()
	w.makeWebhooks()
	ctx, cancel := context.WithCancel(w.Ctx)
	t := &traffic{end: cancel}
	for _, id := range beats {
		t.ending.Go(func() { w.send(ctx, id, 250*time.Millisecond) })
	}
	for _, s := range sorts {
		for _, id := range s.ids() {
			t.ending.Go(func() { w.send(ctx, id, s.every) })
			if s.meddle != nil {
				t.ending.Go(func() { s.meddle(w, ctx, id, w.random(id)) })
			}
		}
	}
	return t
}

// makeWebhooks makes those of all sorts, several at a time.
func (w *world) makeWebhooks() {
	w.T.Helper()
	var making sync.WaitGroup
	for _, s := range sorts {
		for _, id := range s.ids() {
			making.Go(func() {
				e, err := w.MakeWebhook(id, all(s.change))
				if err != nil {
					w.Fail(err)
					return
				}
				for path := range paths {
					w.Receiver.VerifyWith(w.T, onPath(id, path), e.Secrets[0].Value)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.clear[id] = e
			})
		}
	}
	making.Wait()
	w.Must(w.Ctx.Err(), "making the webhooks")
}

func (s *sort) ids() (ids []string) {
	for i := range s.count {
		ids = append(ids, fmt.Sprintf("%s-%d", s.name, i))
	}
	return ids
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
