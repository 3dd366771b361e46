package dispatcher

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// command carries out a record of the commands topic, once: its result, what it
// changed, and its offset are in one transaction.
//
// One for a webhook that is not known waits until that is certain: its creation may
// be on its way, by another broker. Those behind it for the same webhook wait too.
func (n *number) command(now time.Time, r *kgo.Record) {
	id := string(r.Key)
	_, known := n.endpoints.get(id)
	held := n.heldCommands[id]
	if record.KindOf(r.Value) != record.KindCommand || known && len(held) == 0 {
		n.carryOut(now, r)
		return
	}
	n.heldCommands[id] = append(held, r)
	if len(held) == 0 {
		n.askExists(id, func(now time.Time) {
			all := n.heldCommands[id]
			delete(n.heldCommands, id)
			for _, r := range all {
				n.carryOut(now, r)
			}
		})
	}
}

func (n *number) carryOut(now time.Time, r *kgo.Record) {
	d := decision{done: []place{{r.Topic, r.Offset}}, notes: n.note(r.Topic)}
	if record.KindOf(r.Value) == record.KindCommand {
		result := n.obey(now, r)
		n.log.Info("command carried out", "command", result.ID, "webhook", string(r.Key), "result", string(result.Result), "detail", result.Detail)
		d.records = append(d.records, &outgoing{rec: &kgo.Record{Topic: r.Topic, Partition: n.p, Key: r.Key, Value: result.Marshal()}})
	}
	n.out.decide(now, d)
}

func (n *number) obey(now time.Time, r *kgo.Record) (result record.Result) {
	c, err := record.ParseCommand(r.Value)
	result = record.Result{ID: c.ID, At: record.At(now)}
	defer func() {
		if p := recover(); p != nil {
			result.Result, result.Detail = record.ResultFailed, fmt.Sprintf("panic: %v", p)
			n.log.Error("panic over a command", "command", c.ID, "panic", fmt.Sprint(p))
		}
	}()
	refuse := func(format string, args ...any) record.Result {
		result.Result, result.Detail = record.ResultRefused, fmt.Sprintf(format, args...)
		return result
	}
	if err != nil {
		return refuse("%v", err)
	}
	id := string(r.Key)
	if c.Webhook != id {
		return refuse("the command is for webhook %q, but its key is %q", c.Webhook, id)
	}
	if e, known := n.endpoints.get(id); !known || e.deleted() {
		return refuse("there is no webhook %q", id)
	}
	w := n.webhook(id)
	defer n.forget(w)
	if c.ExpectVersion != nil {
		version := w.state.Version
		if w.state.Healthy() {
			version = 0
		}
		if *c.ExpectVersion != version {
			return refuse("the state has moved on: its version is %d, not %d", version, *c.ExpectVersion)
		}
	}
	switch c.Action {
	case record.ActionPause:
		n.pause(now, w, record.PauseManual)
		result.Result, result.Detail = record.ResultDone, "paused; events are parked until it is resumed"
	case record.ActionResume:
		result.Result, result.Detail = record.ResultDone, n.resume(now, w)
	default:
		return refuse("action %q is not known to this version", c.Action)
	}
	return result
}

// resume clears the streak, and every reason that a person may lift: config and
// disabled belong to the configuration.
func (n *number) resume(now time.Time, w *webhook) string {
	w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}
	n.unpause(now, w, record.PauseFailures, record.PauseManual, record.PauseGone)
	if w.paused() {
		reasons := make([]string, len(w.state.PauseReasons))
		for i, r := range w.state.PauseReasons {
			reasons[i] = string(r)
		}
		return "still paused, by its configuration: " + strings.Join(reasons, ", ")
	}
	if parked := w.parkedCount(); parked > 0 {
		return fmt.Sprintf("active; %d parked events go out first", parked)
	}
	return "active"
}
