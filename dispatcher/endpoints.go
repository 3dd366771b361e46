package dispatcher

import (
	"bytes"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// endpoints are the configurations of a number's webhooks, as endpoints-p holds
// them: read to its end before the number starts, and tailed from there, so that
// a change acts within a second.
type endpoints struct {
	entries map[string]*endpoint
	next    int64 // one after the last record seen
	checks  []existence
}

// endpoint is one record of the topic, decoded and prepared when it is needed.
type endpoint struct {
	value   []byte   // nil: a tombstone
	*opened          // unopened until then
	dormant *dormant // what there is of its webhook when that is dormant

	// What is remembered of its last attempt.
	tried, quick bool
}

// opened is what a record says.
type opened struct {
	config record.Endpoint
	ready  *delivery.Endpoint
	err    error // why no request can be made with it
}

var unopened = &opened{}

// existence is an open question whether a webhook exists: answered when the topic
// has been read to end, a high watermark taken after the event or command was
// fetched. No timer could tell.
type existence struct {
	end    int64
	answer func(now time.Time)
}

// get: false means that no record of the webhook is known.
func (e *endpoints) get(id string) (*endpoint, bool) {
	entry, ok := e.entries[id]
	return entry, ok
}

func (e *endpoints) deleted(id string) bool {
	entry, ok := e.entries[id]
	return ok && entry.deleted()
}

func (e *endpoint) deleted() bool { return e.value == nil }

// mayResume: whether a pause by failures ends by itself, without reading what cannot say so.
func (e *endpoint) mayResume() bool { return bytes.Contains(e.value, []byte(`"auto_resume"`)) }

// urlHost is where requests go, as far as that can be read.
func (e *endpoint) urlHost() string {
	if e.ready != nil {
		return e.ready.URLHost()
	}
	return e.config.URLHost
}

// put takes a record of the topic; nil: it is nobody's.
func (e *endpoints) put(r *kgo.Record) *endpoint {
	e.next = r.Offset + 1
	if r.Attrs.IsControl() || len(r.Key) == 0 {
		return nil
	}
	// A copy: the record shares the memory of all that was fetched with it.
	entry := &endpoint{value: bytes.Clone(r.Value), opened: unopened}
	if before := e.entries[string(r.Key)]; before != nil {
		entry.dormant = before.dormant
	}
	e.entries[string(r.Key)] = entry
	return entry
}

// endpointRecords takes what the tail of the topic brought.
func (n *number) endpointRecords(now time.Time, records []*kgo.Record) {
	for _, r := range records {
		entry := n.endpoints.put(r)
		if entry == nil {
			continue
		}
		w := n.webhook(string(r.Key))
		n.noteKeys(w.id, entry)
		if entry.deleted() {
			n.log.Info("webhook deleted", "webhook", w.id)
			n.bury(now, w)
		} else {
			n.log.Info("webhook configuration read", "webhook", w.id)
			n.prepare(now, w, entry)
			n.autoResume(now, w)
			if w.state.HoldUntil.IsZero() { // the rate limit may be another one
				w.notBefore = time.Time{}
			}
			n.makeReady(w)
		}
		n.forget(w)
	}
	n.warnOfKeys()
	n.answerChecks(now)
}

// prepare makes an endpoint ready to be sent to, and the webhook's pause reasons
// config and disabled, and whether it is held, follow what it says. Why it can't be
// used is in the state, for those who can't read our log.
func (n *number) prepare(now time.Time, w *webhook, e *endpoint) {
	n.read(w.id, e)
	if noted := w.state.SetConfigError(e.err); !n.follow(now, w, record.PauseConfig, e.err != nil) && noted {
		n.save(now, w)
	}
	if e.err == nil {
		n.follow(now, w, record.PauseDisabled, !e.config.IsEnabled())
	}
	n.followHolds(now, w, e)
}

// read decodes a configuration when it is needed first.
func (n *number) read(id string, e *endpoint) {
	if e.opened != unopened {
		return
	}
	e.opened = &opened{}
	e.config, e.ready, e.err = n.d.open(id, e.value)
	if e.err != nil {
		n.log.Error("webhook's configuration can't be used", "webhook", id, "error", e.err)
	}
}

// open is what a webhook's record says, as far as it can be read; what an empty one
// does where there is none.
func (n *number) open(id string) *opened {
	e, known := n.endpoints.get(id)
	if !known || e.deleted() {
		return unopened
	}
	n.read(id, e)
	return e.opened
}

// config is a webhook's configuration as far as it can be read, the default one where
// there is none.
func (n *number) config(id string) *record.Endpoint { return &n.open(id).config }

// follow: true, when that has changed something.
func (n *number) follow(now time.Time, w *webhook, reason record.PauseReason, is bool) bool {
	switch {
	case is && !w.state.HasPause(reason):
		n.pause(now, w, reason)
		return true
	case !is && w.state.HasPause(reason):
		n.unpause(now, w, reason)
		return true
	}
	return false
}

// open decodes and decrypts a configuration.
func (d *Dispatcher) open(id string, value []byte) (record.Endpoint, *delivery.Endpoint, error) {
	sealed, err := record.ParseEndpoint(value)
	if err != nil {
		return record.Endpoint{}, nil, err
	}
	if sealed.ID != id {
		return record.Endpoint{}, nil, fmt.Errorf("the record's key is %q, but its id is %q", id, sealed.ID)
	}
	config, err := d.keys.OpenEndpoint(sealed)
	if err != nil {
		return sealed, nil, err
	}
	// Other writers may have put anything there. Left out is what depends on our own
	// settings: http is refused with each request, as forbidden addresses are; and
	// more hops than the CLI allows are slow and nothing else, while a change of
	// retry.tiers must not pause webhooks.
	if err := config.Validate(record.Policy{AllowHTTP: true}); err != nil {
		return sealed, nil, err
	}
	ready, err := delivery.Prepare(config)
	return config, ready, err
}

// bury ends what waits for a deleted webhook: its lane and its retries now, its
// parked events as they are read. What is in flight ends.
func (n *number) bury(now time.Time, w *webhook) {
	for w.lane() > 0 {
		it, _ := w.next()
		n.unqueued(it)
		n.die(now, it, record.WebhookDeleted, "the webhook was deleted")
	}
	for _, it := range n.takeWaiting(func(it *item) bool { return it.Webhook == w.id }) {
		n.die(now, it, record.WebhookDeleted, deletedWaiting)
	}
	if w.discard != nil {
		n.discardEnds(now, w, refused("the webhook was deleted; its events die as %s", record.WebhookDeleted))
	}
	if w.paused() {
		n.paused--
	}
	n.parked.sweep.leaves(w)
	w.heldBy, w.waits, w.notBefore = nil, false, time.Time{}
	n.parked.active[w] = true
	w.state = record.State{Webhook: w.id, Status: record.Active, Parked: w.state.Parked, Version: w.state.Version}
	n.save(now, w)
}

// checkExists asks whether an unknown webhook exists; its lane waits for the answer.
func (n *number) checkExists(w *webhook) {
	if w.checking {
		return
	}
	w.checking = true
	upTo := n.sequence
	n.askExists(w.id, func(now time.Time) { n.answer(now, w, upTo) })
}

// askExists calls answer when the endpoints are read to where they end now.
func (n *number) askExists(webhook string, answer func(now time.Time)) {
	n.running.Go(func() {
		for n.ctx.Err() == nil {
			end, err := kafka.HighWatermark(n.ctx, n.d.plain, n.d.topo.Endpoints(), n.p)
			if err == nil {
				n.inbox.post(func() {
					n.endpoints.checks = append(n.endpoints.checks, existence{end: end, answer: answer})
					n.answerChecks(n.d.now())
				})
				return
			}
			n.log.Warn("looking for a webhook failed, trying again", "webhook", webhook, "error", err)
			n.rest(time.Second)
		}
	})
}

// answerChecks answers the questions whose end has been read.
func (n *number) answerChecks(now time.Time) {
	asked := n.endpoints.checks
	n.endpoints.checks = nil
	for _, c := range asked {
		if n.endpoints.next < c.end {
			n.endpoints.checks = append(n.endpoints.checks, c)
			continue
		}
		c.answer(now)
	}
}

// answer: the webhook exists, or what waited for it up to the item that was asked
// for dies.
func (n *number) answer(now time.Time, w *webhook, upTo uint64) {
	w.checking = false
	if e, known := n.endpoints.get(w.id); known {
		if !e.deleted() {
			n.prepare(now, w, e)
		}
		n.makeReady(w)
		n.forget(w)
		return
	}
	var later []*item
	for w.lane() > 0 {
		it, _ := w.next()
		n.unqueued(it)
		if it.sequence > upTo {
			later = append(later, it)
			continue
		}
		n.die(now, it, record.WebhookUnknown, "no webhook of this id exists; the event can be redriven once it does")
	}
	for _, it := range later { // they came after the question: it is asked again for them
		n.arrive(now, it)
	}
	n.forget(w)
}
