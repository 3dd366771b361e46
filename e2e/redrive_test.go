package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// redrive sends dead events of webhooks again, and notes them for the checker as events that were sent.
func (w *world) redrive(ctx context.Context, o dlqconsumer.RedriveOptions, progress dlqconsumer.Progress) (*dlqconsumer.Plan, dlqconsumer.Sent, error) {
	w.t.Helper()
	letters := dlqconsumer.New(w.client, w.topo)
	plan, err := letters.Plan(w.t.Context(), o, progress)
	if err != nil {
		w.t.Fatal(err)
	}
	writer, err := dlqconsumer.NewWriter(w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	defer writer.Close()
	sent, err := letters.Redrive(ctx, plan, writer, progress)
	return plan, sent, err
}

// redriven are the records of the events topic that a redrive has written.
func (w *world) redriven() (all []*kgo.Record) {
	w.t.Helper()
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.t.Context(), w.client, w.topo.Events(), p, func(r *kgo.Record) error {
			if d, err := record.FromEvent(r); err == nil && d.Redrive != "" {
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

func (w *world) noteRedriven() {
	w.t.Helper()
	for _, r := range w.redriven() {
		w.sent = append(w.sent, history.Acknowledged(r))
	}
}

func noProgress(string, int64, int64) {}

// deadOf are the letters of a webhook, the newest first.
func (w *world) deadOf(webhook string) (all []record.DeadLetter) {
	w.t.Helper()
	err := dlqconsumer.New(w.client, w.topo).List(w.t.Context(), dlqconsumer.Filter{Webhooks: []string{webhook}}, 1000, func(l record.DeadLetter) error {
		all = append(all, l)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// Dead, redriven while the endpoint still fails, dead again, redriven when it is mended: delivered, each time from attempt 1 and under the
// same id, and the log says which redrive it was.
func TestDeadEventsAreRedriven(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusInternalServerError), func(w *world) {
		w.webhook("mended", neverPause, func(e *record.Endpoint) { e.MaxAttempts = 2 })
		w.dispatch("a")
		w.send("mended", 0, 3)
		w.until("for the deaths", time.Minute, func() bool { return len(w.deadOf("mended")) == 3 })

		o := dlqconsumer.RedriveOptions{Filter: dlqconsumer.Filter{Webhooks: []string{"mended"}}}
		first, sent, err := w.redrive(w.t.Context(), o, noProgress)
		if err != nil || sent.Sent != 3 {
			w.t.Fatalf("%+v, %v", sent, err)
		}
		w.until("for them to die again", time.Minute, func() bool { return len(w.deadOf("mended")) == 6 })
		for _, l := range w.deadOf("mended")[:3] {
			if l.Redrive != first.Run+"/1" || l.Attempts != 2 {
				w.t.Errorf("the second letter of %s: redrive %q, %d attempts", l.ID, l.Redrive, l.Attempts)
			}
		}

		w.receiver.Answer("mended", kafkatest.Always(http.StatusOK))
		second, sent, err := w.redrive(w.t.Context(), o, noProgress)
		if err != nil || sent.Sent != 3 || second.Matched != 6 {
			w.t.Fatalf("%+v, %+v, %v", second, sent, err)
		}
		delivered := func() (all []kafkatest.Request) {
			for _, q := range w.receiver.Of("mended") {
				if q.Status == http.StatusOK {
					all = append(all, q)
				}
			}
			return all
		}
		w.until("for the deliveries", time.Minute, func() bool { return len(delivered()) == 3 })
		seen := map[string]bool{}
		for _, q := range delivered() {
			seen[q.EventID] = true
			var n int
			if _, err := fmt.Sscanf(q.EventID, "evt-mended-%d", &n); err != nil || q.Attempt != 1 || string(q.Body) != fmt.Sprintf(`{"webhook":"mended","n":%d}`, n) {
				w.t.Errorf("%s, attempt %d, %s", q.EventID, q.Attempt, q.Body)
			}
		}
		if len(seen) != 3 {
			w.t.Errorf("delivered: %v", seen)
		}
		w.noteRedriven()
		w.finish()
		w.checkSources(second.Run + "/2")

		// Now that they are delivered, nobody sends them once more.
		if third, _, err := w.redrive(w.t.Context(), o, noProgress); err != nil || third.Ready != 0 || third.Matched != 6 {
			w.t.Errorf("once more: %+v, %v", third, err)
		}
	})
}

// checkSources: the source of each delivery in the log is a record with that redrive.
func (w *world) checkSources(redrive string) {
	w.t.Helper()
	byPlace := map[record.Source]string{}
	for _, r := range w.redriven() {
		if d, err := record.FromEvent(r); err == nil {
			byPlace[record.SourceOf(r)] = d.Redrive
		}
	}
	n := 0
	for p := range w.topo.Partitions() {
		_, err := kafka.ReadAll(w.t.Context(), w.client, w.topo.Attempts(), p, func(r *kgo.Record) error {
			a, err := record.ParseAttempt(r.Value)
			if err != nil || a.Outcome != record.Delivered {
				return err
			}
			n++
			if got := byPlace[record.Source{Topic: a.SourceTopic, Partition: a.SourcePartition, Offset: a.SourceOffset}]; got != redrive {
				w.t.Errorf("%s was delivered by the redrive %q, want %q", a.EventID, got, redrive)
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if n != 3 {
		w.t.Errorf("%d deliveries in the log", n)
	}
}

// The events of a paused webhook are parked behind what waits, and go out with the resume; a redrive that was interrupted sends the rest.
func TestRedriveOfAPausedWebhook(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusBadRequest), func(w *world) {
		w.webhook("stopped", neverPause, func(e *record.Endpoint) { e.RetryOn = record.RetryTransient })
		w.dispatch("a")
		w.send("stopped", 0, 5)
		w.until("for the deaths", time.Minute, func() bool { return len(w.deadOf("stopped")) == 5 })
		w.command("stopped", record.ActionPause)
		w.receiver.Answer("stopped", kafkatest.Always(http.StatusOK))

		o := dlqconsumer.RedriveOptions{Filter: dlqconsumer.Filter{Reasons: []record.DeathReason{record.PermanentStatus}}, Run: "twice"}
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		if _, sent, err := w.redrive(ctx, o, noProgress); !errors.Is(err, context.Canceled) || sent.Sent != 0 {
			w.t.Fatalf("%+v, %v", sent, err)
		}
		plan, _, err := w.redrive(w.t.Context(), o, noProgress)
		if err != nil || plan.Ready != 5 || plan.Waiting != 5 {
			w.t.Fatalf("%+v, %v", plan, err)
		}
		w.until("for them to be parked", time.Minute, func() bool { p := w.state("stopped").Parked; return p != nil && p.Count == 5 })
		if again, sent, err := w.redrive(w.t.Context(), o, noProgress); err != nil || again.SentBefore != 5 || sent.Sent != 0 {
			w.t.Errorf("the same run again: %+v, %+v, %v", again, sent, err)
		}
		if r := w.command("stopped", record.ActionResume); r.Result != record.ResultDone {
			w.t.Fatalf("resume: %+v", r)
		}
		w.noteRedriven()
		w.finish()
		if n := len(w.receiver.Of("stopped")); n != 10 {
			w.t.Errorf("%d requests, want 5 that failed and 5 delivered", n)
		}
	})
}
