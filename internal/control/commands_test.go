package control_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

// owner reads commands as a dispatcher does and answers each with what answer
// returns, in one transaction; with abortFirst the first one is aborted, and
// what it held says so.
type owner struct {
	answer     func(record.Command) []record.Result
	abortFirst bool
}

func (o owner) run(ctx context.Context, t *testing.T, w *world) {
	consumer := w.Client(t, kgo.ConsumeTopics(w.topo.Commands()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	producer := w.Client(t, kgo.TransactionalID("owner"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for ctx.Err() == nil {
		consumer.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			cmd, err := record.ParseCommand(r.Value)
			if err != nil {
				return // a result
			}
			for _, commit := range []bool{false, true} {
				if !commit && !o.abortFirst {
					continue
				}
				if err := producer.BeginTransaction(); err != nil {
					t.Error(err)
				}
				for _, result := range o.answer(cmd) {
					result.Detail += map[bool]string{false: "aborted"}[commit]
					answer := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: result.Marshal()}
					if err := producer.ProduceSync(ctx, answer).FirstErr(); err != nil {
						t.Error(err)
					}
				}
				if err := producer.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func (w *world) owned(t *testing.T, o owner) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { o.run(ctx, t, w); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestCommandIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		// What lies in the topic already is passed over, whatever it is.
		w.put(t, w.topo.Commands(), "crm", []byte("not JSON"))
		w.put(t, w.topo.Commands(), "crm", nil)
		var got record.Command
		w.owned(t, owner{
			answer: func(cmd record.Command) []record.Result {
				got = cmd
				return []record.Result{
					{ID: "another", Result: record.ResultFailed},
					{ID: cmd.ID, Result: record.ResultRefused, Detail: "it is paused already"},
				}
			},
			abortFirst: true,
		})

		version := int64(7)
		result, err := c.Do(t.Context(), record.Command{Webhook: "crm", Action: record.ActionPause, By: "ann", Reason: "maintenance", ExpectVersion: &version})
		if err != nil {
			t.Fatal(err)
		}
		if result.Result != record.ResultRefused || result.Detail != "it is paused already" || result.ID != got.ID {
			t.Errorf("got %+v", result)
		}
		if got.Webhook != "crm" || got.Action != record.ActionPause || got.By != "ann" || got.Reason != "maintenance" || *got.ExpectVersion != 7 {
			t.Errorf("the owner got %+v", got)
		}
		if got.ID == "" || got.At.IsZero() {
			t.Errorf("no id or time: %+v", got)
		}
	})
}

// A command that is sent again with its id is answered again: an answer from
// before it does not count.
func TestCommandSentTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, answered := w.process(t), 0
		at := record.At(time.Now().Add(-time.Hour))
		w.owned(t, owner{answer: func(cmd record.Command) []record.Result {
			if !cmd.At.Equal(at.Time) {
				t.Errorf("at %v, want %v", cmd.At, at)
			}
			answered++
			return []record.Result{{ID: cmd.ID, Result: record.ResultDone, Detail: strconv.Itoa(answered)}}
		}})
		for _, want := range []string{"1", "2"} {
			result, err := c.Do(t.Context(), record.Command{ID: "one", At: at, Webhook: "crm", Action: record.ActionResume})
			if err != nil || result.ID != "one" || result.Detail != want {
				t.Errorf("got %+v, %v, want answer %s", result, err, want)
			}
		}
	})
}

func TestPendingCommand(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		webhook := ""
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			if w.topo.PartitionFor(id) == 3 {
				webhook = id
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := time.Now()
		_, err := c.Do(ctx, record.Command{ID: "one", Webhook: webhook, Action: record.ActionPause})
		if !errors.Is(err, control.ErrPending) || err.Error() != "pending: no dispatcher owns number 3" {
			t.Errorf("got %v", err)
		}
		if pending, ok := errors.AsType[*control.PendingError](err); !ok || pending.Number != 3 || pending.ID != "one" {
			t.Errorf("got %+v", err)
		}
		if waited := time.Since(before); waited != 10*time.Second { // of the bubble's clock
			t.Errorf("gave up after %s", waited)
		}
		// It lies there for whoever takes the number over.
		w.owned(t, owner{
			answer: func(cmd record.Command) []record.Result {
				return []record.Result{{ID: cmd.ID, Result: record.ResultDone}}
			},
		})
		if _, err := c.Do(t.Context(), record.Command{Webhook: webhook, Action: record.ActionResume}); err != nil {
			t.Error(err)
		}
	})
}

func TestCommandRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.process(t)
		for _, webhook := range []string{"", "a/b", record.NumberKey} {
			if _, err := c.Do(t.Context(), record.Command{Webhook: webhook, Action: record.ActionPause}); err == nil || !strings.Contains(err.Error(), "webhook id") {
				t.Errorf("%q: got %v", webhook, err)
			}
		}
		// Not written is not pending.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Do(ctx, record.Command{Webhook: "crm", Action: record.ActionPause}); err == nil || errors.Is(err, control.ErrPending) {
			t.Errorf("got %v", err)
		}
	})
}
