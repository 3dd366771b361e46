package clients_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/record"
)

// TestClients: whatever a client can write to the events topic has its defined end,
// and what is delivered is what was written.
func TestClients(t *testing.T) {
	w := newWorld(t)
	clients := findClients(t, strings.Join(w.cluster.Brokers, ","))
	byClient := make([][]*example, len(clients))
	for i, c := range clients {
		all := examples(c.name, c.settings, w.topo, w.cluster.OnApache())
		byClient[i] = slices.DeleteFunc(all, func(x *example) bool {
			why := c.cannot(x, w.cluster.OnApache())
			if why != "" {
				t.Logf("%s: without %q: %s", c.name, x.name, why)
			}
			return why != ""
		})
	}
	w.webhooks(slices.Concat(byClient...))
	stop := w.dispatch()

	answers := make([][][]string, len(clients))
	var producing sync.WaitGroup
	for i, c := range clients {
		producing.Go(func() {
			began := time.Now()
			var err error
			if answers[i], err = c.produce(w.ctx, byClient[i]); err != nil {
				t.Errorf("producing with %s: %v", c.name, err)
			}
			t.Logf("%s: %d examples in %s", c.name, len(byClient[i]), time.Since(began).Round(time.Millisecond))
		})
	}
	producing.Wait()
	if t.Failed() {
		return
	}
	w.awaitIdle()
	topics := w.topics() // with the dispatcher's metrics
	stop()

	for i, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			for n, x := range byClient[i] {
				t.Run(x.name, func(t *testing.T) { topics.check(t, x, answers[i][n]) })
			}
		})
	}
	topics.checkCounts(t)
	w.checkHistory(topics)
}

// webhooks makes those of all examples; each is a transaction.
func (w *world) webhooks(all []*example) {
	w.t.Helper()
	errs := make([]error, len(all))
	var making sync.WaitGroup
	for i, x := range all {
		making.Go(func() { errs[i] = w.webhook(x) })
	}
	making.Wait()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// checkHistory has the promises proved over the whole run.
func (w *world) checkHistory(topics *topics) {
	w.t.Helper()
	collected, err := history.Collect(w.ctx, w.client, w.topo, w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	h := history.History{
		Requests: history.Received(w.receiver.Requests()), Topics: collected, Rules: w.rules, Final: true,
		Slack: 250 * time.Millisecond,
	}
	for _, r := range topics.events {
		if movedFrom(r) == "" {
			h.Sent = append(h.Sent, history.Acknowledged(r))
		}
	}
	report := history.Check(h)
	w.t.Log(report)
	if err := report.Err(); err != nil {
		w.t.Error(err)
	}
}

// movedFrom is where the first record of a moved one lies.
func movedFrom(r *kgo.Record) string {
	d, _ := record.FromEvent(r) // a bad one can't be moved
	if d.Moved == nil {
		return ""
	}
	return d.Moved.String()
}
