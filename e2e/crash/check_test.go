package crash_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// slack is how far the receiver's clock and a dispatcher's may be apart: they are
// one clock, but two processes on a busy machine look at it one after the other.
const slack = 250 * time.Millisecond

// crash is one process that was killed. It may have begun requests until it was
// gone.
type crash struct {
	history.Incident
	started time.Time // the process
}

func (w *world) crashed(p *process, from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes = append(w.crashes, crash{history.Incident{Kind: "crash", Instance: p.instance, From: from, To: to}, p.started})
}

// uncommitted is how old the outcomes can have been that a crash has cost: the
// dispatcher's max_uncommitted, or more where a cycle took longer than that, on a
// machine with more to do than it can. What a dispatcher has committed last tells.
func (w *world) uncommitted(attempts []history.Attempt) time.Duration {
	oldest := dispatcher.Defaults().MaxUncommitted
	for _, c := range w.crashes {
		last := c.started
		for _, a := range attempts {
			if ended := a.Started.Add(a.Duration); a.Dispatcher == c.Instance && a.Started.Before(c.From) && ended.After(last) {
				last = ended
			}
		}
		oldest = max(oldest, c.From.Sub(last))
	}
	return oldest
}

// finish waits until every event is finished, stops the dispatchers and proves the
// history. The webhooks named stay paused: theirs may be parked.
func (w *world) finish(paused ...string) {
	w.t.Helper()
	w.awaitFinished(paused)
	for _, p := range w.processes {
		if !p.isWanted() {
			p.stop()
		}
	}
	topics, err := history.Collect(w.ctx, w.client, w.topo, w.group)
	w.must(err, "collecting the history")
	requests := w.receiver.Requests()
	for _, q := range requests {
		if q.Signature != nil {
			w.t.Errorf("the request for %q at %s has a wrong signature: %v", q.EventID, q.Start, q.Signature)
		}
	}
	h := history.History{
		Sent: w.sent, Requests: history.Received(requests), Topics: topics,
		Rules: w.rules, Final: true, Slack: slack, Uncommitted: w.uncommitted(topics.Attempts),
	}
	for _, c := range w.crashes {
		h.Incidents = append(h.Incidents, c.Incident)
	}
	report := history.Check(h)
	w.t.Log(report)
	if len(w.crashes) > 0 {
		w.t.Logf("%s; outcomes not committed at a kill were at most %s old", repeated(requests, w.crashes), h.Uncommitted.Round(time.Millisecond))
	}
	if err := report.Err(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) awaitFinished(paused []string) {
	w.t.Helper()
	left := map[string]int{}
	err := w.attempts.await(w.ctx, func() bool {
		clear(left)
		for webhook, n := range w.next {
			if n -= w.attempts.finished[webhook]; n > 0 && !slices.Contains(paused, webhook) {
				left[webhook] = n
			}
		}
		return len(left) == 0
	})
	w.must(err, fmt.Sprintf("waiting for every event to be finished, left of each webhook: %v", left))
	for _, webhook := range paused {
		w.until("waiting for the events of "+webhook+" to be parked", func() (bool, error) {
			s, ok, err := w.control.GetState(w.ctx, webhook)
			return ok && s.Parked != nil && int(s.Parked.Count) == w.next[webhook]-w.attempts.count(webhook), err
		})
	}
}

// count is how many events of a webhook are finished.
func (a *attempts) count(webhook string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.finished[webhook]
}

// repeated tells how many requests each crash had made again: those with a number
// that came before, and that came between it and the next one.
func repeated(requests []kafkatest.Request, crashes []crash) string {
	type key struct {
		webhook, id string
		attempt     int
	}
	seen, of := map[key]bool{}, make([]int, len(crashes))
	for _, q := range requests {
		k := key{q.Webhook, q.EventID, q.Attempt}
		if seen[k] {
			// The one before the first that is later; a repeat before all of them is the checker's to find.
			i, _ := slices.BinarySearchFunc(crashes, q.Start, func(c crash, at time.Time) int { return c.From.Compare(at) })
			of[max(0, i-1)]++
		}
		seen[k] = true
	}
	total := 0
	for _, n := range of {
		total += n
	}
	slices.SortFunc(of, cmp.Compare[int])
	return fmt.Sprintf("%d kills, %d requests made again: %.1f a kill, p50 %d, at most %d", len(of), total, float64(total)/float64(len(of)), of[len(of)/2], of[len(of)-1])
}
