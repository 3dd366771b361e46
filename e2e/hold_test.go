package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// hold has a hold or release done, of one webhook or by all numbers.
func (w *world) hold(action record.Action, scope record.HoldScope, value string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := record.Command{Action: action, By: "e2e", Scope: scope, Value: value}
	if scope == record.HoldWebhook {
		c.Webhook = value
		if r, err := w.control.Do(ctx, c); err != nil || r.Result != record.ResultDone {
			w.t.Fatalf("%s: %+v, %v", action, r, err)
		}
		return
	}
	results, err := w.control.DoNumbers(ctx, c)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range results {
		if r.Pending || r.Result.Result != record.ResultDone {
			w.t.Fatalf("%s: %+v", action, r)
		}
	}
}

// Everything, a tenant and one webhook are held and released while events flow and
// dispatchers come and go; tests are sent, one event is too old, parked ones are
// discarded. Nothing starts while it is held, and nothing is lost.
func TestHoldInTraffic(t *testing.T) {
	suite(t, kafkatest.After(5*time.Millisecond, kafkatest.FailSome(0.2, 1)), func(w *world) {
		acme := func(e *record.Endpoint) { e.Tenant = "acme" }
		w.webhook("one", neverPause, acme)
		w.webhook("two", neverPause, acme)
		w.webhook("three", neverPause)
		w.dispatch("a")
		holds := []record.Hold{{Scope: record.HoldWebhook, Value: "one"}, {Scope: record.HoldTenant, Value: "acme"}, {Scope: record.HoldAll}}
		sent := 0
		traffic := func() {
			for _, id := range []string{"one", "two", "three"} {
				w.send(id, sent, 20)
			}
			sent += 20
		}
		for i, h := range append(holds, holds...) {
			traffic()
			w.hold(record.ActionHold, h.Scope, h.Value)
			traffic()
			if i == 2 {
				w.dispatch("b")
				w.stop("a")
			}
			if r := w.command("three", record.ActionTest); (r.Result == record.ResultRefused) != (h.Scope == record.HoldAll) {
				w.t.Errorf("test with %s held: %+v", &h, r)
			}
			w.hold(record.ActionRelease, h.Scope, h.Value)
		}

		w.command("two", record.ActionPause)
		w.send("two", sent, 10)
		w.until("for them to be parked", time.Minute, func() bool { p := w.state("two").Parked; return p != nil && p.Count >= 10 })
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		r, err := w.control.Do(ctx, record.Command{Webhook: "two", Action: record.ActionDiscardParked, By: "e2e", Before: record.At(time.Now().Add(time.Hour))})
		if err != nil || r.Result != record.ResultDone {
			w.t.Fatalf("discard: %+v, %v", r, err)
		}
		w.command("two", record.ActionResume)

		old, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor("three"), record.Event{
			Webhook: "three", ID: "evt-old", Type: "test.happened", CESource: "/e2e", ContentType: "application/json",
			Expiry: record.At(time.Now().Add(-time.Minute)), Value: []byte(http.MethodPost),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.produce(old)
		w.finish()
		died := map[record.DeathReason]int{}
		for _, l := range w.dead() {
			died[l.Reason]++
		}
		if died[record.Discarded] < 10 || died[record.Expired] != 1 || len(died) != 2 {
			w.t.Errorf("died: %v", died)
		}
	})
}
