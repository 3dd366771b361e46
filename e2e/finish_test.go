package e2e_test

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/schemas/schematest"
)

// finish waits until nothing is left to be done, stops the dispatchers, and proves
// the history: the promises, the signatures, and that every record written is what
// the schemas say.
func (w *world) finish() history.Report {
	w.t.Helper()
	w.until("for everything to be finished", 3*time.Minute, w.idle)
	w.stopAll()
	topics, err := history.Collect(w.t.Context(), w.client, w.topo, w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	h := history.History{
		Sent: w.sent, Requests: history.Received(w.receiver.Requests()), Topics: topics,
		Incidents: w.incidents, Rules: w.rules, Final: true,
	}
	if w.cluster.OnApache() {
		h.Slack = 250 * time.Millisecond
	}
	report := history.Check(h)
	w.t.Log(report)
	if err := report.Err(); err != nil {
		w.t.Error(err)
	}
	w.checkSignatures()
	w.checkSchemas()
	return report
}

// idle: whether all that the group reads is committed to its end, and no active
// webhook has anything parked.
func (w *world) idle() bool {
	ctx := w.t.Context()
	commits, err := kadm.NewClient(w.client).FetchOffsets(ctx, w.group)
	if errors.Is(err, kerr.CoordinatorNotAvailable) { // a fresh cluster makes its first coordinator just now
		return false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, topic := range w.topo.Owned() {
		for p := range w.topo.Partitions() {
			from := kafka.Earliest
			if c, ok := commits.Lookup(topic, p); ok && c.At >= 0 {
				from = c.At
			}
			batch, err := kafka.NewReader(w.client, topic, p, from).Next(ctx, 0, 1<<20)
			if err != nil {
				w.t.Fatal(err)
			}
			if len(batch.Records) > 0 || batch.Next < batch.HighWatermark {
				return false
			}
		}
	}
	states, err := w.control.ListStates(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range states {
		if s.Status == record.Active && s.Parked != nil {
			return false
		}
	}
	return true
}

// checkSignatures: the official verifier accepts every request.
func (w *world) checkSignatures() {
	w.t.Helper()
	for _, q := range w.receiver.Requests() {
		if q.Signature != nil {
			w.t.Errorf("request for %s, attempt %d: %v", q.EventID, q.Attempt, q.Signature)
		}
	}
}

// checkSchemas validates all that the pipeline has written.
func (w *world) checkSchemas() {
	w.t.Helper()
	headers := func(schema string) func(*kgo.Record) error {
		return func(r *kgo.Record) error { return schematest.ValidateHeaders(schema, r.Headers) }
	}
	values := func(schema func(*kgo.Record) string) func(*kgo.Record) error {
		return func(r *kgo.Record) error {
			if r.Value == nil {
				return nil
			}
			return schematest.Validate(schema(r), r.Value)
		}
	}
	always := func(name string) func(*kgo.Record) string { return func(*kgo.Record) string { return name } }
	checks := map[string]func(*kgo.Record) error{
		w.topo.Parked():   headers("parked-headers"),
		w.topo.DLQ():      headers("dead-letter-headers"),
		w.topo.Attempts(): values(always("attempt")),
		w.topo.State(): values(func(r *kgo.Record) string {
			if string(r.Key) == record.NumberKey {
				return "number-state"
			}
			return "state"
		}),
		w.topo.Endpoints(): values(always("endpoint")),
		w.topo.Commands():  values(func(r *kgo.Record) string { return record.KindOf(r.Value) }),
		w.topo.Delivered(): func(r *kgo.Record) error {
			_, err := record.ParseDelivered(r.Value)
			return err
		},
	}
	for _, topic := range w.topo.Retries() {
		checks[topic] = headers("retry-headers")
	}
	for topic, check := range checks {
		for p := range w.topo.Partitions() {
			if _, err := kafka.ReadAll(w.t.Context(), w.client, topic, p, check); err != nil {
				w.t.Error(err)
			}
		}
	}
}

// dead reads the DLQ.
func (w *world) dead() []record.DeadLetter {
	w.t.Helper()
	var all []record.DeadLetter
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.t.Context(), w.client, w.topo.DLQ(), p, func(r *kgo.Record) error {
			l, err := record.ParseDeadLetter(r)
			all = append(all, l)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// attempts reads the attempts of one webhook.
func (w *world) attempts(webhook string) []record.Attempt {
	w.t.Helper()
	var all []record.Attempt
	_, err := kafka.ReadAll(w.t.Context(), w.client, w.topo.Attempts(), w.topo.PartitionFor(webhook), func(r *kgo.Record) error {
		a, err := record.ParseAttempt(r.Value)
		if a.Webhook == webhook {
			all = append(all, a)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// count is how many records a topic holds.
func (w *world) count(topic string) (n int) {
	w.t.Helper()
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.t.Context(), w.client, topic, p, func(*kgo.Record) error { n++; return nil })
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return n
}
