package dispatcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// skip lets one record die that a person does not want tried: by the place where it
// lies, or that of its event. What lies in memory dies now, what is in flight when
// its request ends, unless that delivers it; what is parked is read first.
func (n *number) skip(now time.Time, o order) answer {
	at, err := record.ParseSource(o.Value)
	_, waits := n.d.topo.TierOf(at.Topic)
	switch {
	case err != nil:
		return refused("%v", err)
	case at.Topic != n.d.topo.Events() && at.Topic != n.d.topo.Parked() && !waits:
		return refused("%s is no topic that events wait in", at.Topic)
	case at.Partition != n.p:
		return refused("%s is not of number %d: the command belongs into the partition of the record", at, n.p)
	}
	a, found := n.skipInMemory(now, o, at)
	switch {
	case found:
		return a
	case at.Topic == n.d.topo.Parked() && at.Offset < n.parked.end:
		n.running.Go(func() { n.readToSkip(o, at) })
		return later
	case at.Topic == n.d.topo.Parked():
		return refused("%s is not reached yet: the number's parked events end at %d", at, n.parked.end)
	}
	if reached := n.out.position(at.Topic); at.Offset >= reached {
		return refused("%s is not reached yet: number %d has come to %d", at, n.p, reached)
	}
	return refused("%s is done, or lies in another topic by now: see what `reenvio events get` says of its event", at)
}

// skipInMemory looks for the record in lanes, in the due queue and in flight.
func (n *number) skipInMemory(now time.Time, o order, at record.Source) (a answer, found bool) {
	match := func(it *item) bool { return it.topic == at.Topic && it.offset == at.Offset || it.Source == at }
	items := n.takeWaiting(match)
	for _, w := range n.webhooks {
		queued := append(w.retries.take(match), w.queue.take(match)...)
		for _, it := range queued {
			n.unqueued(it)
		}
		items = append(items, queued...)
	}
	for _, it := range items {
		n.die(now, it, record.Discarded, skippedBy(o.Command))
		a = done("%s of webhook %s died as %s", it.ID, it.Webhook, record.Discarded)
	}
	if len(items) > 0 {
		return a, true
	}
	for it := range n.flying {
		switch {
		case !match(it):
		case it.skip != nil:
			return refused("%s is in flight, and command %s skips it already", at, it.skip.ID), true
		default:
			it.skip = &o
			return later, true
		}
	}
	return a, false
}

// skipEnds answers the command when the request that it waited for has ended.
func (n *number) skipEnds(now time.Time, it *item, delivered bool) {
	switch {
	case it.skip == nil:
	case delivered:
		n.end(now, *it.skip, refused("%s of webhook %s was in flight and is delivered", it.ID, it.Webhook))
	default:
		n.end(now, *it.skip, done("%s of webhook %s was in flight, its request has ended, and it is dead", it.ID, it.Webhook))
	}
}

// readToSkip reads the one parked record, in a goroutine of its own.
func (n *number) readToSkip(o order, at record.Source) {
	reader := kafka.NewReader(n.d.plain, at.Topic, at.Partition, at.Offset)
	batch, err := reader.Next(n.ctx, 0, passBytes)
	n.inbox.post(func() {
		now := n.d.now()
		if a := n.trying(o, func() answer { return n.skipParked(now, o, at, batch, err) }); a != later {
			n.end(now, o, a)
		}
	})
}

func (n *number) skipParked(now time.Time, o order, at record.Source, b kafka.Batch, err error) answer {
	if err != nil {
		return failed("%v", err)
	}
	if a, found := n.skipInMemory(now, o, at); found { // it has been read back meanwhile
		return a
	}
	i := slices.IndexFunc(b.Records, func(r *kgo.Record) bool { return r.Offset == at.Offset })
	if i < 0 {
		return refused("there is no event at %s", at)
	}
	r := b.Records[i]
	w := n.known(string(r.Key))
	if w == nil || !w.waitsInParked(at.Offset) {
		return refused("%s is done: its event has left the parked topic", at)
	}
	if w.scattered(at.Offset, w.parked.cursor) {
		return refused("too many events of webhook %s have been taken out of order: resume it first", w.id)
	}
	it, err := n.parkedItem(r)
	reason := skippedBy(o.Command)
	if err != nil {
		reason = problem(err) + "; " + reason
	}
	n.die(now, it, record.Discarded, reason)
	return done("%s of webhook %s died as %s", it.ID, it.Webhook, record.Discarded)
}

func skippedBy(c record.Command) string { return byHand("skipped", c) }

// byHand says who did something, and why.
func byHand(what string, c record.Command) string {
	if c.By != "" {
		what += " by " + c.By
	}
	if c.Reason != "" {
		what = fmt.Sprintf("%s: %s", what, c.Reason)
	}
	return what
}
