package control_test

import (
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

func TestStates(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx, topic := w.process(t), t.Context(), w.topo.State()
		if s, found, err := c.GetState(ctx, "crm"); err != nil || found {
			t.Errorf("before: got %+v %v, %v", s, found, err)
		}
		paused := record.State{Webhook: "crm", ConsecutiveFailures: 10, Version: 1}
		paused.AddPause(record.PauseFailures)
		w.put(t, topic, "crm", record.State{Webhook: "crm", ConsecutiveFailures: 9}.Marshal())
		w.put(t, topic, "crm", paused.Marshal())
		w.put(t, topic, "healthy", record.State{Webhook: "healthy", ConsecutiveFailures: 1}.Marshal())
		w.put(t, topic, "healthy", nil)
		w.put(t, topic, record.NumberKey, record.NumberState{Topics: []string{"events"}}.Marshal())

		s, found, err := c.GetState(ctx, "crm")
		if err != nil || !found || s.ConsecutiveFailures != 10 || !s.HasPause(record.PauseFailures) {
			t.Errorf("got %+v %v, %v", s, found, err)
		}
		if s, found, err := c.GetState(ctx, "healthy"); err != nil || found {
			t.Errorf("behind a tombstone: got %+v %v, %v", s, found, err)
		}
		all, err := c.ListStates(ctx)
		if err != nil || len(all) != 1 || all["crm"].ConsecutiveFailures != 10 {
			t.Errorf("got %+v, %v", all, err)
		}

		w.put(t, topic, "crm", []byte("{"))
		if _, found, err := c.GetState(ctx, "crm"); err == nil || found || !strings.Contains(err.Error(), "state of crm") {
			t.Errorf("an unreadable one: got %v, %v", found, err)
		}
		if _, err := c.ListStates(ctx); err == nil || !strings.Contains(err.Error(), "state of crm") {
			t.Errorf("an unreadable one among all: got %v", err)
		}
	})
}
