package procs

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/e2e/history"
)

// Slack is how far the receiver's clock and a dispatcher's may be apart: they are
// one clock, but two processes on a busy machine look at it one after the other.
const Slack = 250 * time.Millisecond

// Crash is one process that ended without saying goodbye. It may have begun requests
// until it was gone.
type Crash struct {
	history.Incident
	Process *Process
}

func (w *World) crashed(p *Process, from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes = append(w.crashes, Crash{history.Incident{Kind: "crash", Instance: p.Instance, From: from, To: to}, p})
}

// Crashes are the kills so far.
func (w *World) Crashes() []Crash {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.crashes)
}

// Explain is what the crash can have cost: of each number that the process had, the
// outcomes that were not committed. They are as old as the dispatcher's max_uncommitted,
// or older where a cycle took longer than that, on a machine with more to do than it
// can, or while Kafka was gone: what the process had committed last tells, and when its
// log says that the number started.
func (c Crash) Explain(attempts []history.Attempt) (all []history.Incident) {
	for number, since := range c.Process.numbersAt(c.From) {
		all = append(all, c.Process.lost(c.Incident, number, since, attempts))
	}
	return all
}

// Lost is what the loss of one number can have cost, which the log tells of: the same.
func (p *Process) Lost(i history.Incident, number int32, attempts []history.Attempt) history.Incident {
	since, known := p.numbersAt(i.From.Add(-1))[number]
	if !known {
		since = p.Started
	}
	return p.lost(i, number, since, attempts)
}

func (p *Process) lost(i history.Incident, number int32, since time.Time, attempts []history.Attempt) history.Incident {
	for _, a := range attempts {
		if ended := a.Started.Add(a.Duration); a.Dispatcher == p.Instance && a.Started.Before(i.From) && ended.After(since) {
			since = ended
		}
	}
	i.Numbers = []int32{number}
	i.Uncommitted = max(dispatcher.Defaults().MaxUncommitted, i.From.Sub(since))
	return i
}

// numbersAt are the numbers that the process had at a time, by its log, and since when.
// One that it gave up in good order stays among them: the log does not tell.
func (p *Process) numbersAt(at time.Time) map[int32]time.Time {
	numbers := map[int32]time.Time{}
	for _, line := range p.Lines() {
		var l struct {
			Time   time.Time `json:"time"`
			Msg    string    `json:"msg"`
			Number int32     `json:"number"`
		}
		if json.Unmarshal([]byte(line), &l) != nil || l.Time.After(at) {
			continue
		}
		switch l.Msg {
		case "number started":
			numbers[l.Number] = l.Time
		case "number lost":
			delete(numbers, l.Number)
		}
	}
	return numbers
}

// NumberStarted is when a number last started at an instance before a time; zero when it
// did not.
func (w *World) NumberStarted(instance string, number int32, before time.Time) (at time.Time) {
	for _, p := range w.Processes() {
		if p.Instance != instance || p.Started.After(before) {
			continue
		}
		if started := p.numbersAt(before)[number]; started.After(at) {
			at = started
		}
	}
	return at
}

// Sent are the events that Kafka has acknowledged.
func (w *World) Sent() []history.Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// Unfinished is how many events of each webhook are not finished.
func (w *World) Unfinished() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := map[string]int{}
	for webhook, n := range w.next {
		events, _ := w.Attempts.Finished(webhook)
		if n -= events; n > 0 {
			left[webhook] = n
		}
	}
	return left
}
