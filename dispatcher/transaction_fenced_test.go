package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// steal takes a dispatcher's transactional id, as a twin or a successor does.
func (w *world) steal(p *process) {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = new(transactionalID(p.d.cfg.Group, p.d.instance))
	req.TransactionTimeoutMillis = 30_000
	resp, err := req.RequestWith(w.t.Context(), w.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Fenced once, it takes a new client and goes on, with both transaction protocols
// (KIP-890: on the older one a producer that was fenced before it added anything
// notices at the beginning of the next transaction).
func TestFencedOnce(t *testing.T) {
	for name, opts := range map[string][]kfake.Opt{
		"transaction version 2": nil,
		"transaction version 1": {kfake.MaxVersions(kversion.V3_8_0())},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
				w.webhook("w", neverPauses)
				p := w.start("a")
				p.owns(0)
				for i := range 3 {
					p.quiesce()
					w.steal(p)
					w.send("w", 5*i, 5)
				}
				w.until("all are delivered", func() bool { return len(w.delivered("w")) == 15 })
				time.Sleep(time.Minute)
				w.oneChain("w")
				w.counts("w", 30, 30, 15)
			}, opts...)
		})
	}
}

// Fenced inside a transaction, whose records must not appear twice.
func TestFencedInsideATransaction(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		p := w.start("a")
		p.owns(0)
		p.quiesce()

		reached, goOn := make(chan struct{}), make(chan struct{})
		w.cluster.Fake.ControlKey(int16(kmsg.AddOffsetsToTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.DropControl()
			close(reached)
			w.cluster.Fake.SleepControl(func() { <-goOn })
			return nil, nil, false
		})
		w.send("w", 0, 5)
		<-reached
		w.steal(p)
		close(goOn)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
		time.Sleep(time.Minute)
		w.oneChain("w")
		w.counts("w", 10, 10, 5)
	})
}

// Somebody takes the transactional id inside each of our transactions.
func TestFencedAgainAndAgain(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		p := w.startQuietly("a")
		p.owns(0)
		p.quiesce()
		const fences = 5
		times, begun, goOn := 0, make(chan struct{}), make(chan struct{})
		w.cluster.Fake.ControlKey(int16(kmsg.AddOffsetsToTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
			if times++; times <= fences {
				w.cluster.Fake.SleepControl(func() { begun <- struct{}{}; <-goOn })
			}
			return nil, nil, false
		})
		w.send("w", 0, 1)
		for range fences {
			<-begun
			w.steal(p)
			goOn <- struct{}{}
		}
		if err := p.wait(); err == nil || !strings.Contains(err.Error(), `kafka.instance_id "a"`) {
			t.Errorf("it ended with %v, want an error that names the instance id", err)
		}
	})
}

// A commit in between shows that it was no twin.
func TestFencesDoNotAddUpOverCommits(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		p := w.start("a")
		p.owns(0)
		for i := range 12 {
			p.quiesce()
			w.steal(p)
			w.send("w", i, 1)
			w.until("it is delivered", func() bool { return len(w.delivered("w")) == i+1 })
		}
	})
}

// A transaction that was older than its timeout is fenced by the coordinator: no twin.
func TestFenceOfAnOldTransactionDoesNotCount(t *testing.T) {
	d := testDispatcher(t)
	for range 10 {
		d.txn.noteFence(kerr.InvalidProducerEpoch, time.Now().Add(-transactionTimeout))
		d.txn.noteFence(kerr.UnknownServerError, time.Now())
	}
	for range 4 {
		d.txn.noteFence(kerr.ProducerFenced, time.Now())
	}
	select {
	case err := <-d.failed:
		t.Error(err)
	default:
	}
	if d.txn.noteFence(kerr.ProducerFenced, time.Now()); len(d.failed) != 1 {
		t.Error("five young transactions in a row were fenced, and it goes on")
	}
}
