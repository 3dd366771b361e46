package control_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// increment adds one to the number in the description, as people edit: read,
// change, write, and again after a conflict.
func increment(ctx context.Context, c *control.Control, id string) error {
	for {
		e, etag, err := c.GetEndpoint(ctx, id)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(e.Description)
		if err != nil {
			return err
		}
		e.Description = strconv.Itoa(n + 1)
		if _, err := c.WriteEndpoint(ctx, e, etag); !errors.Is(err, control.ErrConflict) {
			return err
		}
	}
}

// Several processes, and several goroutines of one, change the same webhook at
// once: every change is there at the end.
func noChangeIsLost(t *testing.T, w *world) {
	const processes, goroutines, each = 4, 2, 3
	ctx := t.Context()
	e := endpoint("crm")
	e.Description = "0"
	if _, err := w.process(t).WriteEndpoint(ctx, e, control.Absent); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range processes {
		c := w.process(t)
		for range goroutines {
			wg.Go(func() {
				for range each {
					if err := increment(ctx, c, "crm"); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	got, _, err := w.process(t).GetEndpoint(ctx, "crm")
	if err != nil || got.Description != strconv.Itoa(processes*goroutines*each) {
		t.Errorf("got %q, %v, want %d", got.Description, err, processes*goroutines*each)
	}
}

func TestNoChangeIsLost(t *testing.T) { bubble(t, noChangeIsLost) }

// On Apache Kafka too, when REENVIO_TEST_KAFKA says so: who is fenced learns it
// by other codes there.
func TestNoChangeIsLostOnACluster(t *testing.T) {
	noChangeIsLost(t, newWorld(t, kafkatest.Start(t), keyset(t)))
}

// Of writers with one ETag exactly one wins, the others are told.
func TestOneWriterWins(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var won, told atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			c := w.process(t)
			wg.Go(func() {
				switch _, err := c.WriteEndpoint(t.Context(), endpoint("crm"), control.Absent); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, control.ErrConflict):
					told.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || told.Load() != 3 {
			t.Errorf("%d won, %d were told, want 1 and 3", won.Load(), told.Load())
		}
	})
}

// once runs fn when a request of that key comes in, before it is handled, while
// others are served; requests of fn itself pass.
func once(c *kfake.Cluster, key kmsg.Key, fn func(kmsg.Request)) {
	var seen atomic.Bool
	c.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if seen.CompareAndSwap(false, true) {
			c.SleepControl(func() { fn(req) })
		}
		return nil, nil, false
	})
}

// A has read and compared; before its record arrives B writes and commits.
func TestSlowWriterIsFenced(t *testing.T) {
	for name, at := range map[string]kmsg.Key{"before it writes": kmsg.Produce, "before it commits": kmsg.EndTxn} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b, ctx := w.process(t), w.process(t), t.Context()
				etag, err := a.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
				if err != nil {
					t.Fatal(err)
				}
				ours := endpoint("crm")
				ours.Description = "b"
				once(w.Fake, at, func(kmsg.Request) {
					if etag, err = b.WriteEndpoint(ctx, ours, etag); err != nil {
						t.Errorf("the fast one: %v", err)
					}
				})
				if _, err := a.WriteEndpoint(ctx, endpoint("crm"), etag); !errors.Is(err, control.ErrConflict) {
					t.Errorf("the slow one: got %v", err)
				}
				got, current, err := a.GetEndpoint(ctx, "crm")
				if err != nil || got.Description != "b" || current != etag {
					t.Errorf("got %q at %d, %v, want b at %d", got.Description, current, err, etag)
				}
			})
		})
	}
}

// Writers of other webhooks of the number are fenced too, and repeat: they are
// not told of a conflict that isn't one.
func TestFencedByAnotherWebhook(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, ctx := w.process(t), w.process(t), t.Context()
		other := "other"
		for i := 0; w.topo.PartitionFor(other) != w.topo.PartitionFor("crm"); i++ {
			other = "other" + strconv.Itoa(i)
		}
		once(w.Fake, kmsg.Produce, func(kmsg.Request) {
			if _, err := b.WriteEndpoint(ctx, endpoint(other), control.Absent); err != nil {
				t.Error(err)
			}
		})
		etag, err := a.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if err != nil {
			t.Fatal(err)
		}
		list, err := a.ListEndpoints(ctx)
		if err != nil || len(list) != 2 || list[0].ETag != etag {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

// The commit's answer is lost. Whether it was done is read, not guessed.
func TestCommitWithoutAnswer(t *testing.T) {
	for name, done := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				c, ctx, raw := w.process(t), t.Context(), w.Client(t)
				requests := 0
				w.Fake.ControlKey(kmsg.EndTxn.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
					if requests++; requests > 1 {
						return nil, nil, false
					}
					if done {
						w.Fake.SleepControl(func() {
							if resp, err := req.(*kmsg.EndTxnRequest).RequestWith(ctx, raw); err != nil || resp.ErrorCode != 0 {
								t.Errorf("committing in its place: %v, %v", resp, err)
							}
						})
					}
					resp := req.ResponseKind().(*kmsg.EndTxnResponse)
					resp.ErrorCode = kerr.UnknownServerError.Code
					return resp, nil, true
				})
				etag, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
				if err != nil {
					t.Fatal(err)
				}
				if _, stored, err := c.GetEndpoint(ctx, "crm"); err != nil || stored != etag {
					t.Errorf("got %d, %v, want %d", stored, err, etag)
				}
				if requests == 0 {
					t.Error("no transaction was ended: the fault was not met")
				}
			})
		})
	}
}

// A has taken the id; before it reads, B changes the webhook. A must see that.
func TestReadsAfterTakingTheID(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, ctx := w.process(t), w.process(t), t.Context()
		etag, err := a.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if err != nil {
			t.Fatal(err)
		}
		once(w.Fake, kmsg.InitProducerID, func(kmsg.Request) {
			if _, err := b.WriteEndpoint(ctx, endpoint("crm"), etag); err != nil {
				t.Error(err)
			}
		})
		if _, err := a.WriteEndpoint(ctx, endpoint("crm"), etag); !errors.Is(err, control.ErrConflict) {
			t.Errorf("got %v", err)
		}
	})
}

// A writer died inside its transaction. The next one ends it, at once, and what
// it wrote is not there.
func TestWriterDied(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, ctx := w.process(t), t.Context()
		number := w.topo.PartitionFor("crm")
		dead := w.Client(t, kgo.TransactionalID(w.topo.Endpoints()+"-"+strconv.Itoa(int(number))), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := dead.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: w.topo.Endpoints(), Partition: number, Key: []byte("crm"), Value: endpoint("crm").Marshal()}
		if err := dead.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		etag, err := c.WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if err != nil || etag <= r.Offset {
			t.Errorf("got %d, %v, want more than %d", etag, err, r.Offset)
		}
		if waited := time.Since(before); waited > time.Second { // of the bubble's clock
			t.Errorf("waited %s for the dead writer's transaction", waited)
		}
	})
}

// Who never gets the id gives up when the caller's time is over, and says why.
func TestWriteEndsWithContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, TopLevel: true, Err: kerr.ProducerFenced, Count: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.process(t).WriteEndpoint(ctx, endpoint("crm"), control.Absent)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, kerr.ProducerFenced) {
			t.Errorf("got %v", err)
		}
	})
}
