package dispatcher

import (
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// A hold by hand stops requests until a person releases it: of one webhook (kept
// in its state), of a tenant or a host, or of everything (kept in the state of each
// number). A held webhook is handled like a paused one, but keeps its streak and its
// status. While everything is held nothing is parked for it: events and retries wait
// in Kafka, and commands are still done.

// maxHolds bounds the holds of one number: all of them are in one record.
const maxHolds = 1_000

// held is the hold that keeps the webhook back; nil when none does.
func (w *webhook) held() *record.Hold {
	if w.state.Hold != nil {
		return w.state.Hold
	}
	return w.heldBy
}

// stopped: nothing of it may start, it is paused or held, or has asked for a long wait.
func (w *webhook) stopped() bool { return w.paused() || w.held() != nil || w.waits }

// stopOrGo makes a change that may stop the webhook or let it go on. What is queued
// when it stops is parked, due retries first; when it goes on, what is parked goes
// out first.
func (n *number) stopOrGo(now time.Time, w *webhook, change func()) {
	was := w.stopped()
	change()
	switch is := w.stopped(); {
	case is && !was:
		n.parkLane(now, w, n.parkReason(w))
	case was && !is:
		n.parked.active[w], w.parked.quick = true, false
		w.freeAt, w.widening = now, 1
	}
}

// heldAll is the hold of everything; nil when there is none.
func (n *number) heldAll() *record.Hold { return n.notes.Hold(record.HoldAll, "") }

// followHolds makes a webhook follow the number's holds of its tenant and its host,
// which may change while they are held.
func (n *number) followHolds(now time.Time, w *webhook, e *endpoint) {
	var by *record.Hold
	for _, h := range n.notes.Holds {
		if h.Scope != record.HoldAll && h.Concerns(e.config.Tenant, e.urlHost()) {
			by = &h
			break
		}
	}
	n.stopOrGo(now, w, func() { w.heldBy = by })
}

// holdWebhook and releaseWebhook carry out the commands for one webhook.
func (n *number) holdWebhook(now time.Time, w *webhook, c record.Command) answer {
	if err := ofScope(c, w.id); err != nil {
		return refused("%v", err)
	}
	if h := w.state.Hold; h != nil {
		return done("already held%s", since(h))
	}
	n.stopOrGo(now, w, func() { w.state.Hold = newHold(now, c) })
	n.save(now, w)
	return done("held; its events are parked until it is released")
}

func (n *number) releaseWebhook(now time.Time, w *webhook, c record.Command) answer {
	if err := ofScope(c, w.id); err != nil {
		return refused("%v", err)
	}
	if w.state.Hold == nil {
		return done("webhook %s was not held%s", w.id, n.stillStopped(w))
	}
	n.stopOrGo(now, w, func() { w.state.Hold = nil })
	n.save(now, w)
	return done("released%s", n.stillStopped(w))
}

// ofScope: a command for one webhook holds this webhook.
func ofScope(c record.Command, webhook string) error {
	if err := record.ValidHold(c.Scope, c.Value); err != nil {
		return err
	}
	if c.Scope != record.HoldWebhook || c.Value != webhook {
		return fmt.Errorf("a command for webhook %s can't hold or release %s", webhook, &record.Hold{Scope: c.Scope, Value: c.Value})
	}
	return nil
}

// stillStopped is what a person who releases or resumes a webhook must know.
func (n *number) stillStopped(w *webhook) string {
	switch h := w.held(); {
	case w.paused():
		return "; it is paused: " + reasonsOf(w)
	case h != nil && h == w.state.Hold:
		return "; it is held" + since(h)
	case h != nil:
		return "; " + h.String() + " is held" + since(h)
	case n.heldAll() != nil:
		return "; everything is held" + since(n.heldAll())
	case !w.state.HoldUntil.IsZero():
		return "; it has asked to be left alone until " + w.state.HoldUntil.String()
	case w.parkedCount() > 0:
		return fmt.Sprintf("; what is parked goes out first (%d)", w.parkedCount())
	}
	return ""
}

// holdNumber and releaseNumber carry out the commands for all webhooks of the number.
func (n *number) holdNumber(now time.Time, c record.Command) answer {
	switch err := record.ValidHold(c.Scope, c.Value); {
	case err != nil:
		return refused("%v", err)
	case c.Scope == record.HoldWebhook:
		return refused("a hold of one webhook is a command with the key of the webhook, %s", c.Value)
	}
	if h := n.notes.Hold(c.Scope, c.Value); h != nil {
		return done("already held%s", since(h))
	}
	if len(n.notes.Holds) >= maxHolds {
		return refused("there are %d holds already: release some", maxHolds)
	}
	h := newHold(now, c)
	h.Scope, h.Value = c.Scope, c.Value
	n.notes.AddHold(*h)
	n.holdsChanged(now)
	n.log.Warn("held by hand", "hold", h.String(), "by", h.By, "reason", h.Reason)
	return done("%s is held until it is released", h)
}

func (n *number) releaseNumber(now time.Time, c record.Command) answer {
	if err := record.ValidHold(c.Scope, c.Value); err != nil {
		return refused("%v", err)
	}
	h := record.Hold{Scope: c.Scope, Value: c.Value}
	switch {
	case c.Scope == record.HoldWebhook:
		return refused("the release of one webhook is a command with the key of the webhook, %s", c.Value)
	case n.notes.Hold(c.Scope, c.Value) == nil:
		return done("%s was not held", &h)
	}
	n.notes.RemoveHold(c.Scope, c.Value)
	if c.Scope == record.HoldAll {
		n.freeAt = now
	}
	n.holdsChanged(now)
	n.log.Warn("released by hand", "hold", h.String(), "by", c.By, "reason", c.Reason)
	return done("%s is released", &h)
}

// holdsChanged writes the number's holds, and makes all that is in memory follow them.
func (n *number) holdsChanged(now time.Time) {
	notes := n.notes
	n.out.decide(now, decision{notes: &notes})
	for id, w := range n.webhooks {
		if e, known := n.endpoints.get(id); known && !e.deleted() {
			n.prepare(now, w, e)
		}
	}
	n.inbox.wake() // this turn may have passed over what is released
}

// newHold is what is remembered of who asked.
func newHold(now time.Time, c record.Command) *record.Hold {
	at := c.At
	if at.IsZero() {
		at = record.At(now)
	}
	return &record.Hold{By: c.By, At: at, Reason: c.Reason}
}

// since says who holds it, and since when.
func since(h *record.Hold) string {
	by := ""
	if h.By != "" {
		by = " by " + h.By
	}
	return by + " since " + h.At.String()
}
