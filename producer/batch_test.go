package producer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/producer"
)

func failureOf(t *testing.T, err error) *producer.PublishError {
	t.Helper()
	failure, ok := errors.AsType[*producer.PublishError](err)
	if !ok {
		t.Fatalf("got %v, want a PublishError", err)
	}
	return failure
}

// Each event has its own result, in the order of the events, whatever becomes of the others.
func TestPublishAll(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		var events []producer.Event
		for i := range 300 {
			e := producer.Event{Webhook: []string{"a", "b", "c"}[i%3], ID: fmt.Sprint(i)}
			if i%100 == 50 {
				e.Webhook = "not/legal"
			}
			events = append(events, e)
		}
		results := p.PublishAll(t.Context(), events)
		if len(results) != len(events) {
			t.Fatalf("%d results", len(results))
		}
		last := map[int32]int64{}
		for i, r := range results {
			if r.ID != fmt.Sprint(i) {
				t.Errorf("result %d is of event %s", i, r.ID)
			}
			if i%100 == 50 {
				if failure := failureOf(t, r.Err); !errors.Is(r.Err, producer.ErrInvalid) || failure.MaybeWritten {
					t.Errorf("result %d: %v", i, r.Err)
				}
				continue
			}
			if r.Err != nil || r.Offset < last[r.Partition] {
				t.Errorf("result %d: %+v after offset %d", i, r, last[r.Partition])
			}
			last[r.Partition] = r.Offset
		}
		if err := results.Err(); !errors.Is(err, producer.ErrInvalid) || !strings.Contains(err.Error(), "3 of 300 events failed") {
			t.Errorf("got %v", err)
		}
		if err := results[:50].Err(); err != nil {
			t.Errorf("got %v of those that succeeded", err)
		}
		if results := p.PublishAll(t.Context(), nil); len(results) != 0 || results.Err() != nil {
			t.Errorf("nothing gave %v", results)
		}
	})
}

// What PublishAsync was given is called once, and Flush and Close wait for it.
func TestPublishAsync(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		hold := make(chan struct{})
		held := w.Fake.SleepControl
		w.Fake.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			held(func() { <-hold })
			return nil, nil, false
		})
		const n = 100
		calls := make(chan string, 2*n)
		for i := range n {
			p.PublishAsync(t.Context(), producer.Event{Webhook: "crm", ID: fmt.Sprint(i)}, func(published producer.Published, err error) {
				if err != nil {
					t.Errorf("%s: %v", published.ID, err)
				}
				calls <- published.ID
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "100 events") {
			t.Errorf("with all on their way: %v", err)
		}
		close(hold)
		if err := p.Flush(t.Context()); err != nil || len(calls) != n {
			t.Errorf("after a flush: %v, %d calls", err, len(calls))
		}
		for i := range n {
			if id := <-calls; id != fmt.Sprint(i) {
				t.Errorf("call %d is for %s", i, id)
			}
		}
		p.PublishAsync(t.Context(), producer.Event{Webhook: "crm", ID: "last"}, func(published producer.Published, err error) { calls <- published.ID })
		p.Close()
		if len(calls) != 1 {
			t.Errorf("after Close: %d calls", len(calls))
		}
		if _, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"}); !errors.Is(err, producer.ErrClosed) || failureOf(t, err).MaybeWritten {
			t.Errorf("publishing after Close: %v", err)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("flushing after Close: %v", err)
		}
	})
}

// wire leads to the brokers until it is cut: then connections break, and new ones are refused.
type wire struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

func (w *wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dial(ctx, network, addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if w.isCut {
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	w.conns = append(w.conns, c)
	return c, nil
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// No broker is there: the end comes in time, and says so, and that nothing was written. Where a connection was there,
// the client may not know what it has carried before it broke.
func TestBrokersAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		line := &wire{dial: w.Dial}
		before := w.producer(t, w.topo.Events(), kgo.Dialer(line.Dial))
		if _, err := before.Publish(t.Context(), producer.Event{Webhook: "crm"}); err != nil {
			t.Fatal(err)
		}
		line.cut()
		nowhere := w.producer(t, w.topo.Events(), kgo.Dialer(line.Dial))
		for name, p := range map[string]*producer.Producer{"never there": nowhere, "gone": before} {
			for _, limit := range []time.Duration{2 * time.Minute, 10 * time.Second} {
				ctx, cancel := context.WithCancel(t.Context()) // 2 minutes are the default
				if limit < time.Minute {
					ctx, cancel = context.WithTimeout(t.Context(), limit)
				}
				began := time.Now()
				_, err := p.Publish(ctx, producer.Event{Webhook: "crm"})
				cancel()
				if took := time.Since(began); took < limit || took > limit+3*time.Second {
					t.Errorf("%s: it took %s, want %s", name, took, limit)
				}
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
					t.Errorf("%s: got %v", name, err)
				}
				if failure := failureOf(t, err); failure.MaybeWritten && name == "never there" ||
					failure.MaybeWritten != strings.Contains(err.Error(), "it may have been written") || failure.MaybeWritten == strings.Contains(err.Error(), "it was not written") {
					t.Errorf("%s: got %v", name, err)
				}
			}
		}
	})
}

// Events of one partition are given up together, to keep their order, and none of them was written.
func TestGivenUpWithAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		line := &wire{dial: w.Dial}
		line.cut()
		p := w.producer(t, w.topo.Events(), kgo.Dialer(line.Dial))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		first, second := make(chan error, 1), make(chan error, 1)
		p.PublishAsync(ctx, producer.Event{Webhook: "crm"}, func(_ producer.Published, err error) { first <- err })
		p.PublishAsync(t.Context(), producer.Event{Webhook: "crm"}, func(_ producer.Published, err error) { second <- err })
		if err := <-first; failureOf(t, err).MaybeWritten || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: %v", err)
		}
		err := <-second
		if failureOf(t, err).MaybeWritten || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "with an event before it; broker ") {
			t.Errorf("the second: %v", err)
		}
	})
}

// An event that was sent and not answered may be there, and is not taken back: it is written once, when the broker is heard
// again, and publishing it once more is the caller's to decide.
func TestUnansweredEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		published, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"})
		if err != nil {
			t.Fatal(err)
		}
		silent := make(chan struct{})
		w.Fake.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.Fake.SleepControl(func() { <-silent })
			return nil, nil, false
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		calls := make(chan error, 2)
		p.PublishAsync(ctx, producer.Event{Webhook: "crm", ID: "unanswered"}, func(_ producer.Published, err error) { calls <- err })
		if err := <-calls; !failureOf(t, err).MaybeWritten || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(silent)
		next, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"})
		if err != nil || next.Offset != published.Offset+2 {
			t.Errorf("the next lies at %d, %v; the first at %d, and one is between", next.Offset, err, published.Offset)
		}
		if len(calls) != 0 {
			t.Error("what became of it was told twice")
		}
	})
}

// Idempotent, and acknowledged by all in-sync replicas.
func TestProduceRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.producer(t, w.topo.Events())
		requests := make(chan *kmsg.ProduceRequest, 1)
		w.Fake.ControlKey(kmsg.Produce.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			requests <- req.(*kmsg.ProduceRequest)
			return nil, nil, false
		})
		if _, err := p.Publish(t.Context(), producer.Event{Webhook: "crm"}); err != nil {
			t.Fatal(err)
		}
		req := <-requests
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(req.Topics[0].Partitions[0].Records); err != nil {
			t.Fatal(err)
		}
		if req.Acks != -1 || batch.ProducerID < 0 || batch.FirstSequence != 0 {
			t.Errorf("acks %d, producer %d, sequence %d", req.Acks, batch.ProducerID, batch.FirstSequence)
		}
	})
}
