package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A test tells what the endpoint answers, of a paused webhook too, and leaves no
// trace: no attempt, no streak, no state.
func TestTestSend(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { one := 1; e.AutoPauseAfter = &one })
		a := w.start("a")
		a.owns(0)
		if r := w.do("w", record.ActionTest); r.Result != record.ResultDone || r.Detail != "status 200 after <1 ms" {
			t.Errorf("test: %+v", r)
		}
		q := w.receiver.Of("w")[0]
		if !strings.HasPrefix(q.EventID, "test_0_") || q.Header.Get("X-Webhook-Event-Type") != "reenvio.test" || q.Attempt != 1 || !strings.Contains(string(q.Body), `"test":true`) {
			t.Errorf("sent was %+v", q)
		}

		w.receiver.Answer("w", kafkatest.After(2*time.Second, kafkatest.Always(503)))
		if r := w.do("w", record.ActionTest); r.Result != record.ResultFailed || r.Detail != "status 503 after 2000 ms" {
			t.Errorf("test of a failing endpoint: %+v", r)
		}
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}

		w.send("w", 0, 2)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		a.quiesce()
		version := w.state("w").Version
		w.receiver.Answer("w", kafkatest.Always(204))
		if r := w.do("w", record.ActionTest); r.Result != record.ResultDone || r.Detail != "status 204 after <1 ms" {
			t.Errorf("test of a paused webhook: %+v", r)
		}
		a.quiesce()
		if s := w.state("w"); s.Version != version || s.ConsecutiveFailures != 1 {
			t.Errorf("a test has changed the state: %s", s.Marshal())
		}
		w.counts("w", 4, 1, 0)
		if n := len(w.dead()); n != 0 {
			t.Errorf("%d dead", n)
		}
		a.look(0, func(n *number) {
			if len(n.commands) != 0 || len(n.tests) != 0 || n.inFlight.Load() != 0 {
				t.Errorf("still there: %d lines, %d tests, %d in flight", len(n.commands), len(n.tests), n.inFlight.Load())
			}
		})
		if a.d.slots.left() != a.d.cfg.MaxInFlight {
			t.Errorf("%d slots are left", a.d.slots.left())
		}
	})
}

func TestTestSendRefused(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", tenant("acme"))
		w.webhook("bad", func(e *record.Endpoint) { e.Secrets[0].Value = "whsec_x" })
		w.start("a").owns(0)
		refused := func(webhook, says string) {
			t.Helper()
			if r := w.do(webhook, record.ActionTest); r.Result != record.ResultRefused || !strings.Contains(r.Detail, says) {
				t.Errorf("%+v, want refused with %q", r, says)
			}
		}
		refused("bad", "its configuration can't be used: secrets")
		refused("nobody", "there is no webhook")
		for scope, value := range map[record.HoldScope]string{record.HoldWebhook: "w", record.HoldTenant: "acme"} {
			w.hold(scope, value)
			refused("w", "it is held by test since ")
			w.release(scope, value)
		}
		w.hold(record.HoldAll, "")
		refused("w", "everything is held by test since ")
		if n := len(w.receiver.Requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A test waits for a slot like every request, and is begun again by the next owner
// when its own dies; commands behind it for the same webhook wait, others don't.
func TestTestSendTakesTime(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x")
		a := w.start("a", func(o *Options) { o.Config.MaxInFlight = 1 })
		a.owns(0)
		w.receiver.Answer("x", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		w.send("x", 0, 3)
		w.until("the slot is taken", func() bool { return len(w.receiver.Of("x")) == 1 })
		w.produceCommand(record.Command{ID: "test", Webhook: "w", Action: record.ActionTest})
		w.produceCommand(record.Command{ID: "pause w", Webhook: "w", Action: record.ActionPause})
		w.produceCommand(record.Command{ID: "pause x", Webhook: "x", Action: record.ActionPause})
		w.until("the other is paused", func() bool { return w.pausedBy("x", record.PauseManual) })
		if n := len(w.receiver.Of("w")); n != 0 {
			t.Errorf("%d requests without a slot", n)
		}
		w.until("the test is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		a.kill()
		b := w.start("b")
		b.owns(0)
		w.until("the second is paused", func() bool { return w.pausedBy("w", record.PauseManual) })
		if got := w.results(); len(got) != 3 || got[0] != "pause x done" || got[1] != "test done" || got[2] != "pause w done" {
			t.Errorf("results %v", got)
		}
		of := w.receiver.Of("w")
		if len(of) != 2 || of[0].EventID != of[1].EventID {
			t.Errorf("requests %v, want the same test twice", ids(of))
		}
		a.host.Heal()
	})
}
