package dispatcher

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/record"
)

// die ends an event without a request (or without one more).
func (n *number) die(now time.Time, it *item, reason record.DeathReason, message string) {
	a := n.attemptOf(it)
	a.Outcome, a.Next, a.Error = record.Dead, record.NextNone, string(reason)+": "+message
	n.log.Warn("event died", "webhook", it.Webhook, "event", it.ID, "reason", string(reason), "error", message, "source", it.Source.String())
	n.d.metrics.attempt(a, string(reason))
	n.d.metrics.dead.WithLabelValues(string(reason)).Inc()
	n.decide(now, it, n.attemptRecord(it, a), n.deadLetter(it, n.death(now, reason, message, nil, nil)))
}

func (n *number) death(now time.Time, reason record.DeathReason, message string, e *endpoint, res *delivery.Result) record.Death {
	d := record.Death{
		Reason: reason, Message: message, At: record.At(now),
		Group: n.d.cfg.Group, Dispatcher: n.d.instance, Version: n.d.version,
	}
	if e != nil && e.ready != nil {
		d.URLHost = e.ready.URLHost()
	}
	if res != nil {
		d.Response = res.Excerpt
	}
	return d
}

// deadLetter is the record of a death.
func (n *number) deadLetter(it *item, death record.Death) *outgoing {
	return &outgoing{rec: it.DeadLetter(n.d.topo.DLQ(), n.p, death), instead: n.lesserDeaths(it, death)}
}

// outgoing is a retry, parked or moved record: one that can't be written (it was
// compressed better where it came from) dies as too large.
func (n *number) outgoing(it *item, rec *kgo.Record) *outgoing {
	death := n.death(time.Now(), record.TooLarge, "the record could not be written to "+rec.Topic, nil, nil)
	return &outgoing{rec: rec, instead: n.lesserDeaths(it, death)}
}

// lesserDeaths are the dead letters to try when the broker has refused a record
// for its content: with the least that says why; and where even the value alone
// is too large, without it, naming where it lies. There is no third way: a record
// that is written again and again would stop its number.
func (n *number) lesserDeaths(it *item, death record.Death) []func() *kgo.Record {
	dlq := n.d.topo.DLQ()
	return []func() *kgo.Record{
		func() *kgo.Record { return it.MinimalDeadLetter(dlq, n.p, death) },
		func() *kgo.Record {
			bare := *it.Delivery
			bare.Value = nil
			death.Message = fmt.Sprintf("%s; its value of %d bytes could not be written at all, and lies in %s until retention takes it",
				death.Message, len(it.Value), it.Source)
			n.log.Error("a dead letter could not hold its value", "webhook", it.Webhook, "event", it.ID, "source", it.Source.String(), "bytes", len(it.Value))
			return bare.MinimalDeadLetter(dlq, n.p, death)
		},
	}
}

func (n *number) attemptRecord(it *item, a record.Attempt) *outgoing {
	return &outgoing{rec: &kgo.Record{Topic: n.d.topo.Attempts(), Partition: n.p, Key: it.Key, Value: a.Marshal()}}
}
