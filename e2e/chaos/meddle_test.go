package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// patience is how long a command or a change may take before it is given up: an
// outage can be longer, and what is pending is done when it ends.
const patience = 20 * time.Second

// command has one done. It may stay pending; only a refusal is wrong.
func (w *world) command(c record.Command) {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	c.By = "chaos"
	switch result, err := w.Control.Do(ctx, c); {
	case err != nil:
	case result.Result == record.ResultDone:
		w.did(deed(c.Action))
	default:
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
		w.Receiver.Answer(id, w.answer)
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
	if all {
		w.did(deed(fmt.Sprintf("%s of %s", action, scope)))
	}
	return all
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
			if err == nil {
				w.did(redriven)
			}
		}
		cancel() // after an outage the next one takes what is left
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

// copy sends an event again that was sent before, to its webhook or to its neighbour: a
// producer that did not hear of its success does the first.
func (w *world) copy(ctx context.Context, id string, rnd *rand.Rand) {
	name, which, _ := strings.Cut(id, "-")
	neighbour := name + map[string]string{"0": "-1", "1": "-0"}[which]
	for sleep(ctx, between(rnd, 200*time.Millisecond, 3*time.Second)) {
		next := w.Next(id)
		if next == 0 {
			continue
		}
		to, what := id, copied
		if rnd.IntN(3) == 0 {
			to, what = neighbour, shared
		}
		// Most copies come soon, while the first is on its way; some late.
		back := 1 + rnd.IntN(3)
		if rnd.IntN(4) == 0 {
			back = 1 + rnd.IntN(next)
		}
		if err := w.SendCopy(to, id, max(0, next-back)); err != nil {
			w.Fail(err)
			return
		}
		w.did(what)
	}
}

func noProgress(string, int64, int64) {}
