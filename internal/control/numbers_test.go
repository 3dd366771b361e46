package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/record"
)

// commandsOf are the commands in one partition, with the keys of their records.
func (w *world) commandsOf(t *testing.T, number int32) (keys []string, commands []record.Command) {
	t.Helper()
	cl := w.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topo.Commands(): {number: kgo.NewOffset().AtStart()}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if c, err := record.ParseCommand(r.Value); err == nil {
				keys, commands = append(keys, string(r.Key)), append(commands, c)
			}
		})
	}
	return keys, commands
}

// Each number's owner gets the command once, under the number's key, and answers
// for itself.
func TestCommandForAllNumbers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		w.owned(t, owner{answer: func(cmd record.Command) []record.Result {
			return []record.Result{{ID: cmd.ID, Result: record.ResultDone, Detail: "held"}}
		}})
		results, err := c.DoNumbers(t.Context(), record.Command{Action: record.ActionHold, Scope: record.HoldAll, By: "ann"})
		if err != nil || len(results) != 4 {
			t.Fatalf("got %+v, %v", results, err)
		}
		ids := map[string]bool{}
		for i, r := range results {
			if r.Number != int32(i) || r.Pending || r.Result.Result != record.ResultDone || r.Result.Detail != "held" {
				t.Errorf("number %d: got %+v", i, r)
			}
			keys, commands := w.commandsOf(t, r.Number)
			if len(keys) != 1 || keys[0] != record.NumberKey || commands[0].Webhook != "" || commands[0].Scope != record.HoldAll || commands[0].At.IsZero() {
				t.Errorf("number %d: the owner got %q, %+v", i, keys, commands)
			}
			ids[r.Result.ID] = true
		}
		if len(ids) != 1 {
			t.Errorf("one act has %d ids", len(ids))
		}
	})
}

func TestCommandForOneNumber(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		results, err := c.DoNumbers(ctx, record.Command{Action: record.ActionSkip, Value: "webhooks.events/2/7"}, 2)
		if err != nil || len(results) != 1 || results[0].Number != 2 || !results[0].Pending || results[0].Result.ID == "" {
			t.Fatalf("got %+v, %v, want one that is pending", results, err)
		}
		for p := range int32(4) {
			if _, commands := w.commandsOf(t, p); len(commands) != map[bool]int{true: 1}[p == 2] {
				t.Errorf("number %d has %+v", p, commands)
			}
		}
	})
}

// A number whose command can't be written is named; the others' answers are there.
func TestCommandForNumbersFailsInOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		w.owned(t, owner{answer: func(cmd record.Command) []record.Result {
			return []record.Result{{ID: cmd.ID, Result: record.ResultDone}}
		}})
		w.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.topo.Commands(), Partitions: []int32{1}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		results, err := c.DoNumbers(t.Context(), record.Command{Action: record.ActionHold, Scope: record.HoldAll})
		if err == nil || !strings.Contains(err.Error(), "number 1: writing the command hold") {
			t.Errorf("got %v", err)
		}
		if len(results) != 3 || results[0].Number != 0 || results[1].Number != 2 || results[2].Number != 3 {
			t.Errorf("got %+v", results)
		}
	})
}

func TestCommandForNumbersRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		for name, call := range map[string]func() error{
			"names no webhook": func() error {
				_, err := c.DoNumbers(t.Context(), record.Command{Action: record.ActionHold, Webhook: "crm"})
				return err
			},
			"no number 4": func() error {
				_, err := c.DoNumbers(t.Context(), record.Command{Action: record.ActionSkip}, 4)
				return err
			},
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
