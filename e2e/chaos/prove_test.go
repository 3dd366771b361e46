package chaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// prove stops the dispatchers, proves the history, and tells the figures.
func (w *world) prove(length time.Duration) {
	w.T.Helper()
	generation := w.Membership(residents...).Generation
	for _, instance := range residents {
		w.slots[instance].stop()
	}
	topics, err := history.Collect(w.Ctx, w.Client, w.Topo, w.Group)
	w.Must(err, "collecting the history")
	requests := w.Receiver.Requests()
	for _, q := range requests {
		if q.Signature != nil {
			w.T.Errorf("the request for %q at %s has a wrong signature: %v", q.EventID, clock(q.Start), q.Signature)
		}
	}
	w.checkPaths(requests)
	w.checkDeeds(length)
	for _, p := range w.Processes() {
		if line, ok := panicked(p); ok {
			w.T.Errorf("dispatcher %s: %s", p.Instance, line)
		}
	}
	report := history.Check(history.History{
		Sent: append(w.Sent(), w.redriven()...), Requests: received(requests), Topics: topics, Incidents: w.incidents(topics.Attempts),
		Rules: w.RulesNow(), Final: true, Slack: procs.Slack, Learning: learning,
	})
	w.T.Logf("%s\n%s", report, w.figures(length, report, topics, requests, generation))
	if err := report.Err(); err != nil {
		w.T.Errorf("seed %d: %v", w.seed, err)
	}
	w.T.Logf("what was done:\n%s", w.diary())
	sum := w.totals(length, report, len(topics.Events), generation)
	w.T.Log(sum)
	w.Must(sum.keep(), "keeping the totals")
}

// figures are what a closing note says of a run.
func (w *world) figures(length time.Duration, report history.Report, topics history.Topics, requests []kafkatest.Request, generations int32) string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "  %-39s "+format+"\n", append([]any{name}, args...)...)
	}
	kinds := map[kind]int{}
	for _, d := range w.done {
		kinds[d.kind]++
	}
	fmt.Fprintf(&out, "seed %d, %s of faults\n", w.seed, length)
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		line(string(k), "%d", kinds[k])
	}
	line("SIGKILLs in all", "%d", len(w.Crashes()))
	line("group generations", "%d", generations)
	line("traffic", "%s", w.deedsText())
	line("ended by itself", "%d", len(w.unasked))
	line("events", "%d: %v", len(topics.Events), report.Events)
	line("attempts", "%d", len(topics.Attempts))
	line("requests", "%d", report.Requests)
	line("extra requests", "%d: %v", report.Extra, report.Explained)
	var oldest time.Duration
	for _, c := range w.Crashes() {
		for _, i := range c.Explain(topics.Attempts) {
			oldest = max(oldest, i.Uncommitted)
		}
	}
	line("lost by a kill", "outcomes of the last %s at most, of which nothing was committed", oldest.Round(10*time.Millisecond))
	silences := w.silences(requests)
	if len(silences) > 0 {
		longest := slices.MaxFunc(silences, func(a, b silence) int { return cmp.Compare(a.length(), b.length()) })
		slices.SortFunc(silences, func(a, b silence) int { return cmp.Compare(a.length(), b.length()) })
		line("silences over 1 s", "%d, p50 %s, at most %s (number %d, from %s, during %s)", len(silences),
			silences[len(silences)/2].length().Round(10*time.Millisecond), longest.length().Round(10*time.Millisecond),
			longest.number, clock(longest.from), w.during(longest.from, longest.to))
	}
	return out.String()
}

// silence is a time in which a number's beat was not heard.
type silence struct {
	number   int32
	from, to time.Time
}

func (s silence) length() time.Duration { return s.to.Sub(s.from) }

func (w *world) silences(requests []kafkatest.Request) (all []silence) {
	last := map[string]time.Time{}
	for _, q := range requests {
		if !strings.HasPrefix(q.Webhook, "w") {
			continue // it has reasons of its own to be silent
		}
		if before, ok := last[q.Webhook]; ok && q.Start.Sub(before) > time.Second && before.Before(w.calm()) {
			if s := (silence{w.Topo.PartitionFor(q.Webhook), before, q.Start}); w.during(s.from, s.to) != noFault {
				all = append(all, s)
			}
		}
		last[q.Webhook] = q.Start
	}
	return all
}

// calm is when the last fault had ended.
func (w *world) calm() (at time.Time) {
	for _, d := range w.done {
		if d.to.After(at) {
			at = d.to
		}
	}
	return at
}

// noFault was done: a hold of everything, or a busy machine.
const noFault = "no fault"

// during names the faults of a time, and of just before.
func (w *world) during(from, to time.Time) string {
	var all []string
	for _, d := range w.done {
		if d.from.Before(to) && d.to.After(from.Add(-2*time.Second)) {
			all = append(all, d.String())
		}
	}
	return cmp.Or(strings.Join(all, ", "), noFault)
}

// diary is what was done, when.
func (w *world) diary() string {
	var out strings.Builder
	for _, d := range w.done {
		fmt.Fprintf(&out, "  %s to %s  %s", clock(d.from), clock(d.to), d)
		switch d.kind {
		case brokerLoss:
			fmt.Fprintf(&out, ": broker %d", d.number)
		case slowed, narrowed:
			fmt.Fprintf(&out, ": %+v", d.sky)
		default:
		}
		out.WriteByte('\n')
	}
	for _, e := range w.unasked {
		fmt.Fprintf(&out, "  %s  dispatcher %s ended by itself: %s\n", clock(e.at), e.p.Instance, e.why)
	}
	return out.String()
}
