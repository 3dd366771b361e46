package dispatcher

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/record"
)

// die ends an event without a request (or without one more).
func (n *number) die(now time.Time, it *item, reason record.DeathReason, message string) {
	n.decide(now, it, n.deathRecords(now, it, reason, message)...)
}

// deathRecords tell of a death without a request.
func (n *number) deathRecords(now time.Time, it *item, reason record.DeathReason, message string) []*outgoing {
	return []*outgoing{n.tellDeath(it, reason, message), n.deadLetter(it, n.death(now, reason, message, nil, nil))}
}

// tellDeath counts and logs a death without a request, and makes its attempt record.
func (n *number) tellDeath(it *item, reason record.DeathReason, message string) *outgoing {
	a := n.attemptOf(it)
	a.Outcome, a.Next, a.Error = record.Dead, record.NextNone, string(reason)+": "+message
	level := slog.LevelWarn
	if reason == record.Discarded || reason == record.ParkedExpired { // thousands perhaps, and it is said once
		level = slog.LevelInfo
	}
	n.log.Log(n.ctx, level, "event died", "webhook", it.Webhook, "event", it.ID, "reason", string(reason), "error", message, "source", it.Source.String())
	n.d.metrics.attempt(a, string(reason))
	n.d.metrics.dead.WithLabelValues(string(reason)).Inc()
	return n.attemptRecord(it, a)
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
	message := "the record could not be written to " + rec.Topic
	if rec.Topic == n.d.topo.Events() { // which leaves no room for the header of a move
		message = fmt.Sprintf("it is in the wrong partition for its key, and too large to be moved to partition %d", rec.Partition)
	}
	death := n.death(n.d.now(), record.TooLarge, message, nil, nil)
	whole := func() *kgo.Record { return it.DeadLetter(n.d.topo.DLQ(), n.p, death) }
	return &outgoing{
		rec: rec, instead: append([]func() *kgo.Record{whole}, n.lesserDeaths(it, death)...),
		dies: func() *kgo.Record { return n.tellDeath(it, record.TooLarge, message).rec },
	}
}

// lesserDeaths are the dead letters to try when the broker has refused a record
// for its content: with fewer headers; with the least that says why; and where even
// the value alone is too large, without it, naming where it lies.
func (n *number) lesserDeaths(it *item, death record.Death) []func() *kgo.Record {
	dlq := n.d.topo.DLQ()
	return []func() *kgo.Record{
		func() *kgo.Record {
			death.Limit = record.MaxRecordBytes
			return it.DeadLetter(dlq, n.p, death)
		},
		func() *kgo.Record { return it.MinimalDeadLetter(dlq, n.p, death) },
		func() *kgo.Record {
			death.Message = fmt.Sprintf("%s; its value of %d bytes could not be written at all, and lies in %s until retention takes it",
				death.Message, len(it.Value), it.Source)
			n.log.Error("a dead letter could not hold its value", "webhook", it.Webhook, "event", it.ID, "source", it.Source.String(), "bytes", len(it.Value))
			return it.ValuelessDeadLetter(dlq, n.p, death)
		},
	}
}

func (n *number) attemptRecord(it *item, a record.Attempt) *outgoing {
	return &outgoing{rec: a.Record(n.d.topo.Attempts(), n.p, it.Key)}
}
