package control_test

import (
	"strconv"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

func TestStateTail(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		tail := w.process(t).TailState("crm")
		want := func(found bool, parked int64) {
			t.Helper()
			s, got, err := tail.Read(t.Context())
			if err != nil || got != found {
				t.Fatalf("got %v, %v, want %v", got, err, found)
			}
			if found && s.Parked.Count != parked {
				t.Errorf("got %s, want %d parked", s.Marshal(), parked)
			}
		}
		put := func(id string, count int64) {
			w.put(t, w.topo.State(), id, record.State{Webhook: id, Parked: &record.Parked{Count: count}}.Marshal())
		}
		want(false, 0)
		put("crm", 3)
		put("other", 9)
		want(true, 3)
		want(true, 3)
		put("crm", 2)
		put("crm", 1)
		want(true, 1)
		w.put(t, w.topo.State(), "crm", nil)
		want(false, 0)
		w.put(t, w.topo.State(), "crm", []byte("{"))
		if _, _, err := tail.Read(t.Context()); err == nil {
			t.Error("an unreadable state is no state")
		}
	})
}

func TestHolds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		w.put(t, w.topo.State(), record.NumberKey, record.NumberState{Holds: []record.Hold{{Scope: record.HoldTenant, Value: "old"}}}.Marshal())
		w.put(t, w.topo.State(), record.NumberKey, record.NumberState{Holds: []record.Hold{{Scope: record.HoldTenant, Value: "acme"}}}.Marshal())
		number := w.topo.PartitionFor(record.NumberKey) // where put puts it
		all, err := c.ListHolds(t.Context())
		if err != nil || len(all) != 4 {
			t.Fatalf("got %v, %v", all, err)
		}
		for p, holds := range all {
			one, err := c.Holds(t.Context(), int32(p))
			if err != nil || len(one) != len(holds) || (int32(p) == number) != (len(holds) == 1) {
				t.Errorf("number %d: %v and %v, %v", p, holds, one, err)
			}
		}
		if got := all[number][0].Value; got != "acme" {
			t.Errorf("got the hold of %s", got)
		}
	})
}

func TestPausedBy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		commands := 0
		command := func(action record.Action, reason string, code record.ResultCode) {
			commands++
			id := strconv.Itoa(commands)
			w.put(t, w.topo.Commands(), "crm", record.Command{ID: id, Webhook: "crm", Action: action, Reason: reason}.Marshal())
			if code != "" {
				w.put(t, w.topo.Commands(), "crm", record.Result{ID: id, Result: code}.Marshal())
			}
		}
		c := w.process(t)
		want := func(reason string, found bool) {
			t.Helper()
			if by, got, err := c.PausedBy(t.Context(), "crm"); got != found || err != nil || by.Reason != reason {
				t.Errorf("got %+v, %v, %v; want the reason %q, %v", by, got, err, reason, found)
			}
		}
		want("", false)
		command(record.ActionPause, "first", record.ResultDone)
		command(record.ActionPause, "second", record.ResultDone)
		want("second", true)
		command(record.ActionPause, "", record.ResultDone)
		command(record.ActionPause, "refused", record.ResultRefused)
		command(record.ActionPause, "pending", "")
		want("second", true)
		command(record.ActionResume, "", record.ResultDone)
		want("", false)
		command(record.ActionPause, "", record.ResultDone)
		want("", true)
	})
}
