package dispatcher

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/record"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// outcome decides what follows from a request: one attempt record, and one of
// delivered, retry, parked or dead; the streak, and the pause it may lead to.
func (n *number) outcome(now time.Time, w *webhook, it *item, e *endpoint, res delivery.Result) {
	switch res.Class {
	case delivery.ClassCancelled:
		// Cut: by the end of this life, then nobody reads on; or by a lease that came
		// back, then the same attempt is made again.
		n.backToLane(now, w, it)
		return
	case delivery.ClassOurs:
		n.log.Warn("request failed for a reason of ours, trying again", "webhook", w.id, "event", it.ID, "error", res.Detail)
		n.postpone(now, w, time.Second)
		n.backToLane(now, w, it)
		return
	case delivery.ClassDelivered, delivery.ClassFailed, delivery.ClassPermanent, delivery.ClassGone:
	}
	if !n.d.options.Attempts.ResponseExcerpts {
		res.Excerpt = ""
	}
	it.Attempts++
	it.LastAttemptAt = record.At(res.StartedAt)
	if it.Attempts == 1 {
		it.FirstAttemptAt = it.LastAttemptAt
	}
	it.LastStatus, it.LastError = res.Status, ""
	e.tried, e.quick = true, res.Class == delivery.ClassDelivered && res.Duration < quickAnswer
	if it.topic == n.d.topo.Parked() {
		w.parked.quick = res.Duration < quickAnswer && (e.config.RateLimit == 0 || e.config.RateLimit >= quickRate)
	}
	if res.Class == delivery.ClassDelivered {
		n.delivered(now, w, it, e, res)
		return
	}
	it.LastError = failureText(res)
	n.failed(now, w, it, e, res)
}

// backToLane returns an event whose request told nothing.
func (n *number) backToLane(now time.Time, w *webhook, it *item) {
	switch parked := it.topic == n.d.topo.Parked(); {
	case it.skip != nil:
		n.die(now, it, record.Discarded, skippedBy(it.skip.Command))
	case w.stopped() && parked:
		n.leaveInParked(w, it)
	case w.stopped():
		n.park(now, w, it, n.parkReason(w))
	default:
		n.requeue(w, it)
	}
}

func failureText(res delivery.Result) string {
	if res.Detail == "" {
		return string(res.Failure)
	}
	return string(res.Failure) + ": " + res.Detail
}

func (n *number) delivered(now time.Time, w *webhook, it *item, e *endpoint, res delivery.Result) {
	n.remember(now, it)
	a := n.attempt(it, e, res)
	a.Outcome, a.Next = record.Delivered, record.NextNone
	if !it.ProducedAt.IsZero() {
		// A producer may have written a time to come: a sum that shrinks would look like a restart.
		n.d.metrics.latency.Observe(max(0, res.StartedAt.Add(res.Duration).Sub(it.ProducedAt.Time).Seconds()))
	}
	n.settle(now, w, it, a, res, nil)
	if w.widening *= 2; w.widening >= e.config.MaxInFlightOr() {
		w.widening = 0
	}
	if w.state.ConsecutiveFailures > 0 {
		w.state.ConsecutiveFailures, w.state.StreakStartedAt = 0, record.Time{}
		n.answered(w, res.Status, "")
		n.save(now, w)
	}
}

func (n *number) failed(now time.Time, w *webhook, it *item, e *endpoint, res delivery.Result) {
	deleted := n.endpoints.deleted(w.id) // while it was on its way: nobody's streak any more
	if !deleted {
		if w.state.ConsecutiveFailures == 0 {
			w.state.StreakStartedAt = it.LastAttemptAt
		}
		w.state.ConsecutiveFailures++
		n.answered(w, res.Status, it.LastError)
	}

	var pauseFor record.PauseReason
	limit := e.config.AutoPauseAfterOr()
	switch {
	case deleted:
	case res.Class == delivery.ClassGone && !w.state.HasPause(record.PauseGone):
		pauseFor = record.PauseGone
	case limit > 0 && w.state.ConsecutiveFailures >= limit && !w.state.HasPause(record.PauseFailures):
		pauseFor = record.PauseFailures
	}

	asked := min(res.RetryAfter, maxRetryAfter)
	waits := !deleted && asked > shortWait
	a := n.attempt(it, e, res)
	switch last := it.Attempts >= e.config.MaxAttemptsOr(); {
	case res.Class == delivery.ClassPermanent, last:
		a.Outcome, a.Next = record.Dead, record.NextNone
		reason := deathReason(res)
		n.settle(now, w, it, a, res, n.deadLetter(it, n.death(now, reason, it.LastError, e, &res)))
		n.d.metrics.dead.WithLabelValues(string(reason)).Inc()
	case it.skip != nil:
		a.Outcome, a.Next = record.Dead, record.NextNone
		message := skippedBy(it.skip.Command) + "; its last attempt: " + it.LastError
		n.settle(now, w, it, a, res, n.deadLetter(it, n.death(now, record.Discarded, message, e, &res)))
		n.d.metrics.dead.WithLabelValues(string(record.Discarded)).Inc()
	case w.stopped() || pauseFor != "" || waits:
		// It goes before what its pause will park: it was sent first.
		a.Outcome, a.Next = record.Failed, record.NextParked
		it.DueAt = record.Time{}
		why := record.ParkPaused
		switch {
		case w.stopped() && pauseFor == "":
			why = n.parkReason(w)
		case pauseFor == "":
			why = record.ParkHold
		}
		n.noteHead(w, it, e.config.OrderingOr())
		n.settle(now, w, it, a, res, n.toParked(now, w, it, why))
	default:
		wait := n.d.schedule.Delay(it.Attempts, policyOf(&e.config), rand.Float64())
		it.DueAt = record.NotBefore(calendar(now, res.StartedAt.Add(res.Duration+wait)))
		n.noteHead(w, it, e.config.OrderingOr())
		a.Outcome, a.Next, a.NextAttemptAt = record.Failed, record.NextRetry, it.DueAt
		tier := n.d.line.Tier(wait)
		n.settle(now, w, it, a, res, n.retryRecord(w, it, tier))
	}
	if !deleted && asked > 0 {
		n.wait(now, w, calendar(now, res.StartedAt.Add(res.Duration+asked)))
	}
	switch {
	case pauseFor != "":
		n.pause(now, w, pauseFor)
	case !deleted:
		n.save(now, w)
	}
}

// calendar is t as the wall clock counts now: it may have been set since t was taken.
func calendar(now, t time.Time) time.Time { return now.Add(t.Sub(now)) }

// answered notes the last answer, unless there is something of more weight: why the
// configuration, which has changed meanwhile, can't be used.
func (n *number) answered(w *webhook, status int, problem string) {
	if !w.state.HasPause(record.PauseConfig) {
		w.state.LastStatus, w.state.LastError = status, problem
	}
}

func deathReason(res delivery.Result) record.DeathReason {
	switch {
	case res.Failure == delivery.FailureURLBlocked:
		return record.URLBlocked
	case res.Class == delivery.ClassPermanent:
		return record.PermanentStatus
	}
	return record.AttemptsExhausted
}

// settle records an attempt and where the event goes, in one decision.
func (n *number) settle(now time.Time, w *webhook, it *item, a record.Attempt, res delivery.Result, to *outgoing) {
	n.d.metrics.attempt(a, string(res.Failure))
	n.d.metrics.duration.Observe(res.Duration.Seconds())
	n.logAttempt(w, it, a)
	var records []*outgoing
	if a.Outcome != record.Delivered || n.d.successes.keep(it.ID) {
		records = append(records, n.attemptRecord(it, a))
	}
	if to != nil {
		records = append(records, to)
	}
	n.decide(now, it, records...)
}

// decide puts records into the next transaction together with the end of the
// record that it lies in.
func (n *number) decide(now time.Time, it *item, records ...*outgoing) {
	it.decided = true
	d := decision{records: records}
	if w := n.webhooks[it.Webhook]; w != nil && w.state.HeadAt(it.Source) != nil && !n.goesOn(records) {
		n.headEnds(w, it, records)
		defer n.save(now, w)
	}
	d.sent = it.delivered
	if n.recent.window > 0 && it.delivered {
		d.recent = []record.DeliveredID{it.id()}
	}
	if it.topic == n.d.topo.Parked() {
		if w := n.webhooks[it.Webhook]; w != nil {
			n.doneInParked(w, it)
			n.out.decide(now, d)
			n.save(now, w)
			return
		}
	} else {
		d.done = []place{{it.topic, it.offset}}
		d.notes = n.note(it.topic)
	}
	n.out.decide(now, d)
}

// note remembers, with the first commit for a topic, that there was one.
func (n *number) note(topic string) *record.NumberState {
	if !n.notes.AddTopic(topic) {
		return nil
	}
	notes := n.notes
	return &notes
}

// attempt is the attempt record of a request, but for what follows from it.
func (n *number) attempt(it *item, e *endpoint, res delivery.Result) record.Attempt {
	a := n.attemptOf(it)
	a.Attempt = it.Attempts
	a.Status, a.Error = res.Status, it.LastError
	a.StartedAt, a.DurationMS = it.LastAttemptAt, res.Duration.Milliseconds()
	a.URLHost, a.ResponseExcerpt = e.ready.URLHost(), res.Excerpt
	if it.retry() {
		a.DueAt = it.DueAt
		a.LatenessMS = max(0, res.StartedAt.Sub(it.able).Milliseconds())
	}
	return a
}

func (n *number) attemptOf(it *item) record.Attempt {
	return record.Attempt{
		Webhook: it.Webhook, EventID: it.ID, EventType: it.Type, ProducedAt: it.ProducedAt,
		SourceTopic: it.Source.Topic, SourcePartition: it.Source.Partition, SourceOffset: it.Source.Offset,
		Dispatcher: n.d.instance, Version: n.d.version,
	}
}

// logAttempt writes the one wide line of an attempt: ids and facts, no body, no
// secret, no path of a URL.
func (n *number) logAttempt(w *webhook, it *item, a record.Attempt) {
	if !n.log.Enabled(n.ctx, slog.LevelInfo) {
		return
	}
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs,
		slog.String("webhook", w.id), slog.String("event", it.ID), slog.Int("attempt", a.Attempt),
		slog.String("outcome", string(a.Outcome)), slog.String("next", string(a.Next)), slog.Int("status", a.Status),
		slog.Int64("duration_ms", a.DurationMS), slog.Int("streak", w.state.ConsecutiveFailures), slog.String("source", it.Source.String()),
	)
	if a.Error != "" {
		attrs = append(attrs, slog.String("error", a.Error), slog.String("host", a.URLHost))
	}
	if !a.NextAttemptAt.IsZero() {
		attrs = append(attrs, slog.String("next_attempt_at", a.NextAttemptAt.String()))
	}
	n.log.LogAttrs(n.ctx, slog.LevelInfo, "attempt", attrs...)
}

func policyOf(c *record.Endpoint) retrytiers.Policy {
	p := retrytiers.Policy{Jitter: retrytiers.Jitter(c.JitterOr())}
	for _, d := range c.Schedule {
		p.Schedule = append(p.Schedule, time.Duration(d))
	}
	return p
}
