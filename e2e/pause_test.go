package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// command has a command done and returns its result.
func (w *world) command(webhook string, action record.Action) record.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	r, err := w.control.Do(ctx, record.Command{ID: fmt.Sprintf("cmd-%d", time.Now().UnixNano()), Webhook: webhook, Action: action, By: "test", At: record.At(time.Now())})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestTenFailuresPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kafkatest.Virtual(t), 3, kafkatest.Always(500))
		w.webhook("down")
		stop := w.dispatch("a")
		w.send("down", 0, 30)
		time.Sleep(2 * time.Minute)
		if got := len(w.receiver.Of("down")); got != 10 {
			t.Fatalf("%d requests, want 10", got)
		}
		s, ok, err := w.control.GetState(t.Context(), "down")
		t.Log(string(s.Marshal()), ok, err)
		stop()
		w.dispatch("a")
		w.send("down", 30, 5)
		time.Sleep(time.Minute)
		if got := len(w.receiver.Of("down")); got != 10 {
			t.Fatalf("%d requests after a restart, want 10", got)
		}
		w.receiver.Answer("down", kafkatest.Always(200))
		t.Log(w.command("down", record.ActionResume))
		w.send("down", 35, 5)
		time.Sleep(time.Minute)
		for _, r := range w.receiver.Of("down") {
			t.Log(r.Start.Format("04:05.000"), r.EventID, r.Attempt, r.Status)
		}
		s, ok, err = w.control.GetState(t.Context(), "down")
		t.Log(string(s.Marshal()), ok, err)
	})
}
