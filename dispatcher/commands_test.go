package dispatcher

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Pause parks what is queued and what comes; resume sends it first, in order.
func TestPauseAndResume(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.receiver.Answer("w", kafkatest.After(3*time.Second, kafkatest.Always(200)))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 5)
		w.until("the first is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		if r := w.do("w", record.ActionPause); r.Result != record.ResultDone {
			t.Fatalf("pause: %+v", r)
		}
		w.send("w", 5, 5)
		time.Sleep(time.Minute)
		a.quiesce()
		if got := len(w.receiver.Of("w")); got != 1 {
			t.Errorf("%d requests, want the one that was in flight", got)
		}
		s := w.state("w")
		if s.Status != record.Paused || !s.HasPause(record.PauseManual) || s.Parked == nil || s.Parked.Count != 9 || s.PausedAt.IsZero() {
			t.Errorf("state %s", s.Marshal())
		}
		w.receiver.Answer("w", kafkatest.Always(200))
		if r := w.do("w", record.ActionResume); r.Result != record.ResultDone || !strings.Contains(r.Detail, "what is parked goes out first (9)") {
			t.Errorf("resume: %+v", r)
		}
		w.send("w", 10, 5)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 15 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 15))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		w.oneChain("w")
	})
}

func TestRefusedCommands(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("gone")
		w.start("a").owns(0)
		w.delete("gone")
		zero, wrong := int64(0), int64(7)
		for name, c := range map[string]struct {
			webhook string
			change  func(*record.Command)
			says    string
		}{
			"an unknown action": {"w", func(c *record.Command) { c.Action = "explode" }, "explode"},
			"no such webhook":   {"nobody", func(*record.Command) {}, "nobody"},
			"a deleted webhook": {"gone", func(*record.Command) {}, "gone"},
			"another version":   {"w", func(c *record.Command) { c.ExpectVersion = &wrong }, "its version is 0, not 7"},
		} {
			r := w.do(c.webhook, record.ActionPause, c.change)
			if r.Result != record.ResultRefused || !strings.Contains(r.Detail, c.says) {
				t.Errorf("%s: %+v, want refused with %q", name, r, c.says)
			}
		}
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("a refused command has changed the state: %s", s.Marshal())
		}

		// The version that is there is accepted: 0 where there is no state.
		if r := w.do("w", record.ActionPause, func(c *record.Command) { c.ExpectVersion = &zero }); r.Result != record.ResultDone {
			t.Errorf("pause at version 0: %+v", r)
		}
		version := w.state("w").Version
		if r := w.do("w", record.ActionResume, func(c *record.Command) { c.ExpectVersion = &zero }); r.Result != record.ResultRefused {
			t.Errorf("resume at version 0 of a paused webhook: %+v", r)
		}
		if r := w.do("w", record.ActionResume, func(c *record.Command) { c.ExpectVersion = &version }); r.Result != record.ResultDone {
			t.Errorf("resume at version %d: %+v", version, r)
		}
		// Also when the owner still remembers one, because something is on its way.
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.do("w", record.ActionResume)
		if r := w.do("w", record.ActionPause, func(c *record.Command) { c.ExpectVersion = &zero }); r.Result != record.ResultDone {
			t.Errorf("pause at version 0, again: %+v", r)
		}
	})
}

// What is no command, or one for another webhook than its key says, does no harm and does not stop the others.
func TestForeignCommands(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x")
		w.start("a").owns(0)
		at := func(key string, value []byte) *kgo.Record {
			return &kgo.Record{Topic: w.topo.Commands(), Key: []byte(key), Value: value}
		}
		crossed := record.Command{ID: "crossed", Webhook: "x", Action: record.ActionPause}
		w.produce(
			at("w", nil), at("w", []byte("{")), at("w", []byte(`{"kind":"joke"}`)), at("w", []byte(`{"kind":"command"}`)),
			at("w", record.Result{ID: "r", Result: record.ResultDone}.Marshal()),
			at("w", crossed.Marshal()),
		)
		if r := w.do("w", record.ActionPause); r.Result != record.ResultDone {
			t.Errorf("pause: %+v", r)
		}
		for _, r := range w.committed(w.topo.Commands()) {
			if result, err := record.ParseResult(r.Value); err == nil && result.ID == "crossed" && result.Result != record.ResultRefused {
				t.Errorf("a command for x under the key of w: %+v", result)
			}
		}
		if s := w.state("x"); !s.Healthy() {
			t.Errorf("state of x: %s", s.Marshal())
		}
	})
}

// Nobody owns the number: the command waits, and is done when somebody does.
func TestCommandWaitsForAnOwner(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.control.Do(ctx, record.Command{Webhook: "w", Action: record.ActionPause})
		if !errors.Is(err, control.ErrPending) {
			t.Fatalf("a command without an owner: %v", err)
		}
		w.send("w", 0, 1)
		w.start("a").owns(0)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseManual) })
		// The event was older than the pause was done: it may have been sent or not.
		w.send("w", 1, 1)
		w.until("what comes later is parked", func() bool {
			p := w.parked("w")
			return len(p) > 0 && p[len(p)-1].ID == eventID("w", 1)
		})
	})
}

// A command is done once, also when its owner dies before that is committed:
//
//  1. a pauses the webhook, and can't commit it;
//  2. a dies; b does it;
//  3. a person resumes it. Nobody pauses it again.
func TestCommandIsDoneOnce(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1, When: commitsOf("a")})
		b := w.start("b")
		pause := record.Command{ID: "once", Webhook: "w", Action: record.ActionPause}
		w.produce(&kgo.Record{Topic: w.topo.Commands(), Key: []byte("w"), Value: pause.Marshal()})
		w.until("a has paused it", func() bool {
			paused := false
			a.look(0, func(n *number) { paused = n.paused == 1 })
			return paused
		})
		a.kill()
		b.owns(0)
		w.until("b has paused it", func() bool { return w.pausedBy("w", record.PauseManual) })
		if r := w.do("w", record.ActionResume); r.Result != record.ResultDone {
			t.Fatalf("resume: %+v", r)
		}
		a.host.Heal()
		time.Sleep(2 * time.Minute)
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		results := 0
		for _, r := range w.committed(w.topo.Commands()) {
			if result, err := record.ParseResult(r.Value); err == nil && result.ID == "once" {
				results++
			}
		}
		if results != 1 {
			t.Errorf("%d results, want 1", results)
		}
	})
}
