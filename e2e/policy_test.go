package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// The policy: five attempts at 0, 2, 4, 8, 16 s plus jitter, then the DLQ.
func TestFiveAttemptsThenDead(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusInternalServerError), func(w *world) {
		w.webhook("down")
		w.dispatch("a")
		w.send("down", 0, 1)
		w.finish()

		requests := w.receiver.Of("down")
		if len(requests) != 5 {
			t.Fatalf("%d requests, want 5", len(requests))
		}
		for i, q := range requests {
			if q.Attempt != i+1 || q.EventID != "evt-down-0" {
				t.Errorf("request %d is attempt %d of %s", i+1, q.Attempt, q.EventID)
			}
			if i == 0 {
				continue
			}
			least := time.Second << i
			if wait := q.Start.Sub(requests[i-1].End); wait < least {
				t.Errorf("attempt %d came after %s, want at least %s", q.Attempt, wait, least)
			}
		}
		dead := w.dead()
		if len(dead) != 1 {
			t.Fatalf("%d dead letters, want 1", len(dead))
		}
		l := dead[0]
		if string(l.Value) != `{"webhook":"down","n":0}` || string(l.Key) != "down" {
			t.Errorf("dead letter has key %q and value %q", l.Key, l.Value)
		}
		if l.Reason != record.AttemptsExhausted || l.Attempts != 5 || l.LastStatus != 500 || l.Dispatcher != "a" || l.Version != "test" {
			t.Errorf("dead letter says %+v", l)
		}
	})
}

// Success is 200, 201, 202 and 204, and nothing else.
func TestOnlyFourStatusesAreSuccess(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusOK), func(w *world) {
		want := map[int]bool{200: true, 201: true, 202: true, 204: true}
		statuses := []int{200, 201, 202, 203, 204, 205, 206, 301, 302, 304, 307, 400, 401, 404, 410, 429, 500, 503}
		for _, status := range statuses {
			id := fmt.Sprintf("answers-%d", status)
			w.webhook(id, func(e *record.Endpoint) { e.MaxAttempts = 1 })
			w.receiver.Answer(id, func(*kafkatest.Request) kafkatest.Response {
				return kafkatest.Response{Status: status, Header: http.Header{"Location": {w.receiver.URL("elsewhere")}}}
			})
		}
		w.dispatch("a")
		for _, status := range statuses {
			w.send(fmt.Sprintf("answers-%d", status), 0, 1)
		}
		w.finish()
		for _, status := range statuses {
			attempts := w.attempts(fmt.Sprintf("answers-%d", status))
			if len(attempts) != 1 {
				t.Errorf("%d: %d attempt records, want 1", status, len(attempts))
				continue
			}
			got := attempts[0]
			wanted := record.Dead
			if want[status] {
				wanted = record.Delivered
			}
			if got.Outcome != wanted || got.Status != status {
				t.Errorf("%d: recorded as %s with status %d, want %s", status, got.Outcome, got.Status, wanted)
			}
		}
		if followed := w.receiver.Of("elsewhere"); len(followed) > 0 {
			t.Errorf("%d redirects were followed", len(followed))
		}
	})
}

// retry_on: transient sends what can't become right to the DLQ at once, and 410
// pauses.
func TestPermanentStatuses(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusOK), func(w *world) {
		transient := func(e *record.Endpoint) { e.RetryOn = record.RetryTransient }
		w.webhook("forbidden", transient)
		w.receiver.Answer("forbidden", kafkatest.Always(http.StatusForbidden))
		w.webhook("gone", transient)
		w.receiver.Answer("gone", kafkatest.Always(http.StatusGone))
		w.dispatch("a")
		w.send("forbidden", 0, 2)
		w.send("gone", 0, 3)
		w.finish()

		if n := len(w.receiver.Of("forbidden")); n != 2 {
			t.Errorf("%d requests after a permanent status, want one for each of 2 events", n)
		}
		for _, l := range w.dead() {
			if l.Webhook != "forbidden" || l.Reason != record.PermanentStatus {
				t.Errorf("dead letter of %q for %q", l.Webhook, l.Reason)
			}
		}
		if n := len(w.receiver.Of("gone")); n != 1 {
			t.Errorf("%d requests to an endpoint that is gone, want 1", n)
		}
		if s := w.state("gone"); !s.HasPause(record.PauseGone) || s.Parked == nil || s.Parked.Count != 3 {
			t.Errorf("state of the endpoint that is gone: %s", s.Marshal())
		}
	})
}

// A third attempt that succeeds ends the chain, and the streak.
func TestThirdAttemptDelivers(t *testing.T) {
	suite(t, kafkatest.FailFirst(2), func(w *world) {
		w.webhook("flaky")
		w.dispatch("a")
		w.send("flaky", 0, 3)
		w.finish()
		if n := len(w.receiver.Of("flaky")); n != 9 {
			t.Errorf("%d requests, want 9", n)
		}
		if s := w.state("flaky"); !s.Healthy() {
			t.Errorf("state after the last success: %s", s.Marshal())
		}
	})
}

// One deadline covers an attempt, and it is the webhook's own.
func TestTimeoutFails(t *testing.T) {
	suite(t, func(q *kafkatest.Request) kafkatest.Response {
		return kafkatest.Response{Status: http.StatusOK, Hang: q.Attempt == 1}
	}, func(w *world) {
		w.webhook("slow", func(e *record.Endpoint) { e.Timeout = record.Duration(time.Second) })
		w.dispatch("a")
		w.send("slow", 0, 1)
		w.finish()
		attempts := w.attempts("slow")
		if len(attempts) != 2 || attempts[0].Outcome != record.Failed || attempts[0].DurationMS < 1000 || attempts[1].Outcome != record.Delivered {
			t.Errorf("attempts: %+v", attempts)
		}
	})
}

// An hour in a delay topic costs a bubble no time.
func TestTierOfAnHour(t *testing.T) {
	longWait(t, time.Hour, time.Hour, 1)
}

// A wait longer than the largest tier hops, and a hop is no attempt.
func TestLongWaitHops(t *testing.T) {
	longWait(t, 55*time.Minute, 10*time.Minute, 5)
}

// longWait fails each event once, so that it waits; records is how often one of
// them lies in the largest tier meanwhile.
func longWait(t *testing.T, wait, largest time.Duration, records int) {
	const events = 20
	inBubbleOf(t, 1, kafkatest.FailFirst(1), func(w *world) {
		w.webhook("patient", neverPause, func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(wait)} })
		rules := w.rules["patient"]
		rules.Delay = func(int) (least, most time.Duration) { return wait, wait + wait/10 }
		w.rules["patient"] = rules
		w.dispatch("a")
		w.send("patient", 0, events)
		time.Sleep(wait) // nothing can be over before
		w.until("for all to be delivered", 2*time.Hour, w.idle)
		report := w.finish()
		if n := report.Events["delivered"]; n != events {
			t.Errorf("%d events delivered, want %d", n, events)
		}
		if n := len(w.receiver.Of("patient")); n != 2*events {
			t.Errorf("%d requests, want %d", n, 2*events)
		}
		if late := report.Lateness.Max; late > 50*time.Millisecond {
			t.Errorf("a retry was late by %s", late)
		}
		if n := w.count(w.topo.Retry(largest)); n < events*records || n > events*(records+1) {
			t.Errorf("%d records in the largest tier, want %d for each of %d events, or one more with jitter", n, records, events)
		}
	}, 2*time.Second, time.Minute, largest)
}
