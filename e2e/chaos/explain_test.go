package chaos_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/e2e/procs"
)

// An extra request is explained by what cost it: a process that died, or a number
// that was lost. A kill is noted by who killed. That a number was lost, or requests
// were cut because the lease had ended, only the dispatcher itself knows: its log says
// so. But it is believed only where a fault of the plan was the cause.

const (
	// session is how long the group waits for a member; within half of it a dispatcher
	// that hears nothing falls silent.
	session = 10 * time.Second
	// effect is how long after its end a fault may still show: a broker that is back
	// loads its groups, a dispatcher joins again.
	effect = 20 * time.Second
)

// loss is a line of a dispatcher's log that tells of one.
type loss struct {
	At     time.Time `json:"time"`
	Msg    string    `json:"msg"`
	Number int32     `json:"number"`
	Reason string    `json:"reason"`
}

func losses(p *procs.Process) (all []loss) {
	for _, line := range p.Lines() {
		var l loss
		if json.Unmarshal([]byte(line), &l) == nil && (l.Msg == "number lost" || l.Msg == "requests cut") {
			all = append(all, l)
		}
	}
	return all
}

// incidents are what may have cost requests, the first of them that fits counts: what a
// stopped process sends when it goes on comes last. A loss without a cause is an error
// of the test.
func (w *world) incidents(attempts []history.Attempt) (all []history.Incident) {
	w.T.Helper()
	for _, e := range w.unasked {
		if !e.p.Said("dispatcher started") {
			continue // it found no broker, and has sent nothing
		}
		c := procs.Crash{Incident: history.Incident{Kind: "end by itself", Instance: e.p.Instance, From: e.at, To: e.at}, Process: e.p}
		all = append(all, w.silenced(c.Explain(attempts)...)...)
		if !w.caused(e.p.Instance, e.at) {
			w.T.Errorf("dispatcher %s ended by itself at %s, and no fault explains it: %s", e.p.Instance, clock(e.at), e.why)
		}
	}
	for _, p := range w.Processes() {
		for _, l := range losses(p) {
			if !w.caused(p.Instance, l.At) {
				w.T.Errorf("dispatcher %s: %s at %s, number %d (%s), and no fault explains it", p.Instance, l.Msg, clock(l.At), l.Number, l.Reason)
			}
			all = append(all, w.silenced(l.incident(p, attempts))...)
		}
	}
	for _, c := range w.Crashes() {
		all = append(all, w.silenced(c.Explain(attempts)...)...)
	}
	for _, d := range w.done {
		if d.kind == stopped {
			all = append(all, history.Incident{Kind: "stop, going on", Instance: d.target, From: d.to, To: d.to, Resumed: true, Most: aboutToSend})
		}
	}
	return all
}

func (l loss) incident(p *procs.Process, attempts []history.Attempt) history.Incident {
	i := history.Incident{Kind: "lost lease", Instance: p.Instance, From: l.At, To: l.At, Numbers: []int32{l.Number}, Uncommitted: time.Millisecond}
	if l.Msg == "requests cut" {
		return i // what had ended is committed later
	}
	i.Kind = "lost number"
	return p.Lost(i, l.Number, attempts)
}

// caused: whether a fault was done to a dispatcher, or to the brokers, then or just
// before.
func (w *world) caused(instance string, at time.Time) bool {
	for _, d := range w.done {
		if d.hurts(instance) && !at.Before(d.from) && at.Before(d.to.Add(effect)) {
			return true
		}
	}
	return false
}

func (d done) hurts(instance string) bool { return d.target == instance || d.target == "brokers" }

// aboutToSend is how many requests a process may have been about to send when it was
// stopped: past the lease, and not yet written. They take microseconds each.
const aboutToSend = 5

// silenced shortens incidents to what a dispatcher can have begun when it could do
// nothing, or hear nothing: none but what its lease allowed. So a lease that does not
// hold shows.
func (w *world) silenced(incidents ...history.Incident) []history.Incident {
	for n := range incidents {
		w.silence(&incidents[n])
	}
	return incidents
}

func (w *world) silence(i *history.Incident) {
	for _, d := range w.done {
		if !d.hurts(i.Instance) || i.From.Before(d.from) {
			continue
		}
		last := d.from.Add(session / 2)
		switch d.kind {
		case stopped:
			last = d.from
		case cutOff, allLost:
		default:
			continue
		}
		// When it is over, a membership that was lost is lost at once; but one that was
		// not is as good as before, and brokers that come back give every member time. Who
		// is alone may have joined again at once, too.
		over := d.to
		if d.kind != allLost && d.to.Sub(d.from) > session+2*time.Second && !w.brokersHurt(d.from, d.to) && !w.begunAgain(i, d.to) {
			over = over.Add(2 * time.Second)
		}
		if i.From.Before(over) && last.Before(i.To) {
			i.To = last
		}
	}
}

// begunAgain: whether a number of the incident has started since.
func (w *world) begunAgain(i *history.Incident, since time.Time) bool {
	return slices.ContainsFunc(i.Numbers, func(number int32) bool { return w.NumberStarted(i.Instance, number, i.From).After(since) })
}

func (w *world) brokersHurt(from, to time.Time) bool {
	for _, d := range w.done {
		if d.target == "brokers" && d.from.Before(to) && d.to.After(from) {
			return true
		}
	}
	return false
}

func clock(t time.Time) string { return fmt.Sprint(t.UTC().Format("15:04:05.000")) }
