package dispatcher

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// order is a record of the commands topic that is a command.
type order struct {
	record.Command
	rec *kgo.Record
}

// answer is how a command ended, but for its id and time.
type answer struct {
	code   record.ResultCode
	detail string
}

// later: the command takes time, its result comes by end.
var later = answer{}

func done(format string, args ...any) answer {
	return answer{record.ResultDone, fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) answer {
	return answer{record.ResultRefused, fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) answer {
	return answer{record.ResultFailed, fmt.Sprintf(format, args...)}
}

// commandLine is what must be done for one webhook in turn.
type commandLine struct {
	checking bool // whether the webhook exists is being found out
	running  bool // a command is begun and not done yet
	waiting  fifo[*kgo.Record]
}

// command carries out a record of the commands topic, once: its result, what it
// changed, and its offset are in one transaction.
//
// One for a webhook that is not known waits until that is certain: its creation may
// be on its way, by another broker. Those behind it for the same webhook wait too,
// and those behind one that takes time.
func (n *number) command(now time.Time, r *kgo.Record) {
	id := string(r.Key)
	if id == record.NumberKey || record.KindOf(r.Value) != record.KindCommand {
		n.begin(now, r)
		return
	}
	l := n.commands[id]
	if l == nil {
		_, known := n.endpoints.get(id)
		l = &commandLine{checking: !known}
		n.commands[id] = l
		if !known {
			n.askExists(id, func(now time.Time) {
				l.checking = false
				n.inTurn(now, id)
				for _, r := range l.waiting.take(prompt) { // those that come later need not wait at all
					n.begin(now, r)
				}
			})
		}
	}
	if l.checking || l.running && !prompt(r) {
		l.waiting.push(r)
		return
	}
	l.running = !n.begin(now, r) || l.running
	n.inTurn(now, id)
}

// inTurn carries out what waits for nothing any more. It does not look at what has to
// wait longer, which may be thousands.
func (n *number) inTurn(now time.Time, webhook string) {
	l := n.commands[webhook]
	for !l.checking && !l.running && l.waiting.len() > 0 {
		r, _ := l.waiting.pop()
		l.running = !n.begin(now, r)
	}
	if !l.checking && !l.running {
		delete(n.commands, webhook)
	}
}

// prompt: a hold must stop requests at once, whatever takes its time. It changes
// nothing that the others look at and that is lost by their order.
func prompt(r *kgo.Record) bool {
	c, err := record.ParseCommand(r.Value)
	return err == nil && (c.Action == record.ActionHold || c.Action == record.ActionRelease)
}

// begin carries a command out; false: its result comes later.
func (n *number) begin(now time.Time, r *kgo.Record) bool {
	if record.KindOf(r.Value) != record.KindCommand {
		n.out.decide(now, decision{done: []place{{r.Topic, r.Offset}}, notes: n.note(r.Topic)})
		return true
	}
	c, err := record.ParseCommand(r.Value)
	o := order{Command: c, rec: r}
	a := refused("%v", err)
	if err == nil {
		a = n.trying(o, func() answer { return n.obey(now, o) })
	}
	if a == later {
		return false
	}
	n.result(now, o, a)
	return true
}

// end gives the result of a command that took time, and goes on with what waits
// behind it.
func (n *number) end(now time.Time, o order, a answer) {
	n.result(now, o, a)
	if l := n.commands[string(o.rec.Key)]; l != nil {
		l.running = false
		n.inTurn(now, string(o.rec.Key))
	}
}

func (n *number) result(now time.Time, o order, a answer) {
	result := record.Result{ID: o.ID, Result: a.code, Detail: a.detail, At: record.At(now)}
	n.log.Info("command carried out", "command", o.ID, "action", string(o.Action), "webhook", o.Webhook, "by", o.By, "result", string(a.code), "detail", a.detail)
	n.out.decide(now, decision{
		records: []*outgoing{{rec: result.Record(o.rec.Topic, n.p, o.rec.Key)}},
		done:    []place{{o.rec.Topic, o.rec.Offset}},
		notes:   n.note(o.rec.Topic),
	})
}

// trying answers a panic over a command.
func (n *number) trying(o order, f func() answer) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("panic over a command", "command", o.ID, "panic", fmt.Sprint(p))
			a = failed("panic: %v", p)
		}
	}()
	return f()
}

func (n *number) obey(now time.Time, o order) answer {
	id := string(o.rec.Key)
	if id == record.NumberKey {
		return n.obeyForNumber(now, o)
	}
	if o.Webhook != id {
		return refused("the command is for webhook %q, but its key is %q", o.Webhook, id)
	}
	e, known := n.endpoints.get(id)
	if !known || e.deleted() {
		return refused("there is no webhook %q", id)
	}
	w := n.webhook(id)
	defer n.forget(w)
	if o.ExpectVersion != nil {
		version := w.state.Version
		if w.state.Healthy() {
			version = 0
		}
		if *o.ExpectVersion != version {
			return refused("the state has moved on: its version is %d, not %d", version, *o.ExpectVersion)
		}
	}
	n.prepare(now, w, e)
	switch o.Action {
	case record.ActionPause:
		n.pause(now, w, record.PauseManual)
		return done("paused; events are parked until it is resumed")
	case record.ActionResume:
		return n.resume(now, w)
	case record.ActionHold:
		return n.holdWebhook(now, w, o.Command)
	case record.ActionRelease:
		return n.releaseWebhook(now, w, o.Command)
	case record.ActionTest:
		return n.test(o)
	case record.ActionDiscardParked:
		return n.discardParked(w, o)
	case record.ActionSkip:
		return refused("skip is a command for a number: its key is %s, and it names no webhook", record.NumberKey)
	}
	return refused("action %q is not known to this version", o.Action)
}

// obeyForNumber carries out a command that is for no single webhook.
func (n *number) obeyForNumber(now time.Time, o order) answer {
	switch {
	case o.Webhook != "":
		return refused("the command is for webhook %q, but its key is %q", o.Webhook, record.NumberKey)
	case o.ExpectVersion != nil:
		return refused("a number's state has no version to expect")
	}
	switch o.Action {
	case record.ActionHold:
		return n.holdNumber(now, o.Command)
	case record.ActionRelease:
		return n.releaseNumber(now, o.Command)
	case record.ActionSkip:
		return n.skip(now, o)
	case record.ActionPause, record.ActionResume, record.ActionTest, record.ActionDiscardParked:
		return refused("%s is a command for a webhook, which is its key", o.Action)
	}
	return refused("action %q is not known to this version", o.Action)
}

// resume clears the streak, and every reason that a person may lift: config and
// disabled belong to the configuration.
func (n *number) resume(now time.Time, w *webhook) answer {
	w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}
	n.unpause(now, w, record.PauseFailures, record.PauseManual, record.PauseGone)
	if w.paused() {
		return done("still paused, by its configuration: %s", reasonsOf(w))
	}
	return done("active%s", n.stillStopped(w))
}

func reasonsOf(w *webhook) string {
	reasons := make([]string, len(w.state.PauseReasons))
	for i, r := range w.state.PauseReasons {
		reasons[i] = string(r)
	}
	return strings.Join(reasons, ", ")
}
