package chaos_test

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// heal mends every endpoint, releases every hold, resumes every webhook, and waits
// until every event is finished.
func (w *world) heal() {
	w.T.Helper()
	w.healed.Store(true)
	for i := range 4 {
		w.Receiver.Answer(fmt.Sprintf("down-%d", i), w.answer) // mended or not
	}
	w.Until("having everything released", func() (bool, error) {
		all := w.numbers(record.ActionRelease, record.HoldAll, "")
		return w.numbers(record.ActionRelease, record.HoldTenant, tenant) && all, nil
	})
	for i := range changedOrders {
		w.Until("lifting a rate limit", func() (bool, error) {
			_, _, err := w.Control.ChangeEndpoint(w.Ctx, fmt.Sprintf("changed-%d", i), func(e *record.Endpoint) error {
				e.RateLimit = 0
				return nil
			})
			return true, err
		})
	}
	events := w.events()
	var left map[string]int
	for began := time.Now(); ; {
		left = map[string]int{}
		for id, sent := range events {
			events, copies := w.Attempts.Finished(id)
			if n := len(sent) - events - copies; n > 0 {
				left[id] = n
			}
		}
		if len(left) == 0 {
			return
		}
		states, err := w.Control.ListStates(w.Ctx)
		for id, s := range states {
			if s.Hold != nil {
				w.command(record.Command{Webhook: id, Action: record.ActionRelease, Scope: record.HoldWebhook, Value: id})
			}
			if s.Status == record.Paused {
				w.command(record.Command{Webhook: id, Action: record.ActionResume})
			}
		}
		if time.Since(began) > draining {
			w.T.Fatalf("%s after the last fault events are not finished, of each webhook: %v; states: %v; %v", draining, left, states, err)
		}
		w.Pause(2 * time.Second)
	}
}

// events are those of the topic, by webhook. Redriven ones are there, too.
func (w *world) events() map[string][]*kgo.Record {
	w.T.Helper()
	all := map[string][]*kgo.Record{}
	for p := range w.Topo.Partitions() {
		_, err := kafka.ReadAll(w.Ctx, w.Client, w.Topo.Events(), p, func(r *kgo.Record) error {
			all[string(r.Key)] = append(all[string(r.Key)], r)
			return nil
		})
		w.Must(err, "reading the events")
	}
	return all
}

// redriven are the events that a redrive has sent.
func (w *world) redriven() (all []history.Sent) {
	w.T.Helper()
	for _, records := range w.events() {
		for _, r := range records {
			if d, err := record.FromEvent(r); err == nil && d.Redrive != "" {
				all = append(all, history.Acknowledged(r))
			}
		}
	}
	return all
}
