package crash_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// finish waits until every event is finished, stops the dispatchers and proves the
// history. The webhooks named stay paused: theirs may be parked.
func (w *world) finish(paused ...string) {
	w.T.Helper()
	w.awaitFinished(paused)
	for _, p := range w.Processes() {
		if !p.Wanted() {
			p.Stop()
		}
	}
	topics, err := history.Collect(w.Ctx, w.Client, w.Topo, w.Group)
	w.Must(err, "collecting the history")
	requests := w.Receiver.Requests()
	for _, q := range requests {
		if q.Signature != nil {
			w.T.Errorf("the request for %q at %s has a wrong signature: %v", q.EventID, q.Start, q.Signature)
		}
	}
	h := history.History{Sent: w.Sent(), Requests: history.Received(requests), Topics: topics, Rules: w.Rules, Final: true, Slack: procs.Slack}
	crashes := w.Crashes()
	var oldest time.Duration
	for _, c := range crashes {
		for _, i := range c.Explain(topics.Attempts) {
			h.Incidents = append(h.Incidents, i)
			oldest = max(oldest, i.Uncommitted)
		}
	}
	for _, s := range w.stops {
		h.Incidents = append(h.Incidents, s.Explain(topics.Attempts)...)
	}
	report := history.Check(h)
	w.T.Log(report)
	if len(crashes) > 0 {
		w.T.Logf("%s; outcomes not committed at a kill were at most %s old", repeated(requests, crashes), oldest.Round(time.Millisecond))
	}
	if err := report.Err(); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) awaitFinished(paused []string) {
	w.T.Helper()
	var left map[string]int
	err := w.Attempts.Await(w.Ctx, func() bool {
		left = w.Unfinished()
		for _, webhook := range paused {
			delete(left, webhook)
		}
		return len(left) == 0
	})
	w.Must(err, fmt.Sprintf("waiting for every event to be finished, left of each webhook: %v", left))
	for _, webhook := range paused {
		w.Until("waiting for the events of "+webhook+" to be parked", func() (bool, error) {
			s, ok, err := w.Control.GetState(w.Ctx, webhook)
			return ok && s.Parked != nil && int(s.Parked.Count) == w.Unfinished()[webhook], err
		})
	}
}

// repeated tells how many requests each crash had made again: those with a number
// that came before, and that came between it and the next one.
func repeated(requests []kafkatest.Request, crashes []procs.Crash) string {
	type key struct {
		webhook, id string
		attempt     int
	}
	seen, of := map[key]bool{}, make([]int, len(crashes))
	for _, q := range requests {
		k := key{q.Webhook, q.EventID, q.Attempt}
		if seen[k] {
			// The one before the first that is later; a repeat before all of them is the checker's to find.
			i, _ := slices.BinarySearchFunc(crashes, q.Start, func(c procs.Crash, at time.Time) int { return c.From.Compare(at) })
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
