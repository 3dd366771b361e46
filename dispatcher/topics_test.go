package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// committed are the committed records of all partitions of a topic. It waits for open transactions.
func (w *world) committed(topic string) []*kgo.Record {
	w.t.Helper()
	var all []*kgo.Record
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.t.Context(), w.client, topic, p, func(r *kgo.Record) error {
			all = append(all, r)
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// attempts are the attempt records of one webhook, in order.
func (w *world) attempts(webhook string) []record.Attempt {
	w.t.Helper()
	var all []record.Attempt
	for _, r := range w.committed(w.topo.Attempts()) {
		a, err := record.ParseAttempt(r.Value)
		if err != nil {
			w.t.Fatal(err)
		}
		if string(r.Key) == webhook {
			all = append(all, a)
		}
	}
	return all
}

// dead are all dead letters.
func (w *world) dead() []record.DeadLetter {
	w.t.Helper()
	var all []record.DeadLetter
	for _, r := range w.committed(w.topo.DLQ()) {
		l, err := record.ParseDeadLetter(r)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// retries are the records of all delay topics that belong to a webhook.
func (w *world) retries(webhook string) []*record.Delivery {
	w.t.Helper()
	var all []*record.Delivery
	for _, topic := range w.topo.Retries() {
		all = append(all, w.waiting(topic, webhook)...)
	}
	return all
}

// parked are the records of the parked topic that belong to a webhook.
func (w *world) parked(webhook string) []*record.Delivery {
	w.t.Helper()
	return w.waiting(w.topo.Parked(), webhook)
}

func (w *world) waiting(topic, webhook string) []*record.Delivery {
	w.t.Helper()
	var all []*record.Delivery
	for _, r := range w.committed(topic) {
		d, err := record.FromWaiting(r)
		if err != nil {
			w.t.Fatal(err)
		}
		if string(r.Key) == webhook {
			all = append(all, d)
		}
	}
	return all
}

// state is the webhook's state on record; the zero State when there is none.
func (w *world) state(webhook string) record.State {
	w.t.Helper()
	s, _, err := w.control.GetState(w.t.Context(), webhook)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// quiesce waits until no transaction of a dispatcher is under way, and what it has decided is committed.
func (p *process) quiesce() {
	p.w.t.Helper()
	p.w.until("all that was decided is committed", func() bool {
		empty := true
		p.d.ownership.each(func(n *number) { empty = empty && n.out.empty() })
		return empty
	})
	time.Sleep(2 * p.d.cfg.Cycle) // what follows from the commit
}

// ids are the event ids of requests, in the order of their arrival.
func ids(requests []kafkatest.Request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.EventID)
	}
	return all
}

// eventIDs are those of the events first to first+n-1.
func eventIDs(webhook string, first, n int) []string {
	var all []string
	for i := first; i < first+n; i++ {
		all = append(all, eventID(webhook, i))
	}
	return all
}

// mustEqual compares two lists of ids.
func mustEqual(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// delivered are the ids that the log of attempts calls delivered, in order.
func (w *world) delivered(webhook string) []string {
	w.t.Helper()
	var all []string
	for _, a := range w.attempts(webhook) {
		if a.Outcome == record.Delivered {
			all = append(all, a.EventID)
		}
	}
	return all
}

// oneChain checks that the attempts of each event of a webhook are numbered 1, 2, ... and that nothing is written twice.
func (w *world) oneChain(webhook string) {
	w.t.Helper()
	last := map[string]int{}
	for _, a := range w.attempts(webhook) {
		if a.Attempt == 0 && a.Outcome == record.Dead {
			continue // it ended without a request
		}
		if a.Attempt != last[a.EventID]+1 {
			w.t.Errorf("%s: attempt %d is on record after attempt %d", a.EventID, a.Attempt, last[a.EventID])
		}
		last[a.EventID] = a.Attempt
	}
	chain := map[string]map[int]int{}
	for _, d := range w.retries(webhook) {
		if chain[d.ID] == nil {
			chain[d.ID] = map[int]int{}
		}
		if chain[d.ID][d.Attempts]++; chain[d.ID][d.Attempts] > 1 {
			w.t.Errorf("%s: the retry after attempt %d is there twice", d.ID, d.Attempts)
		}
	}
}

// counts checks how many requests were made of a webhook's events, and how many attempt and retry records there are.
func (w *world) counts(webhook string, requests, attempts, retries int) {
	w.t.Helper()
	if got := len(w.receiver.Of(webhook)); got != requests {
		w.t.Errorf("%s: %d requests, want %d", webhook, got, requests)
	}
	if got := len(w.attempts(webhook)); got != attempts {
		w.t.Errorf("%s: %d attempts on record, want %d", webhook, got, attempts)
	}
	if got := len(w.retries(webhook)); got != retries {
		w.t.Errorf("%s: %d retry records, want %d", webhook, got, retries)
	}
}

// pausedBy says whether a webhook is paused for a reason, on record.
func (w *world) pausedBy(webhook string, reason record.PauseReason) bool {
	w.t.Helper()
	s := w.state(webhook)
	return s.HasPause(reason)
}
