package crash_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTakeover: the numbers of a dispatcher that died for good are delivered on by
// another within 15 s.
func TestTakeover(t *testing.T) {
	t.Run("between transactions", func(t *testing.T) {
		takeover(t, func(_ *world, p *process) time.Time { return p.kill() })
	})
	t.Run("inside a transaction", func(t *testing.T) {
		takeover(t, func(w *world, p *process) time.Time {
			killed := w.killInside(p)
			if !w.holdsOffsets(p) {
				t.Fatal("the dead dispatcher's transaction does not hold its offsets")
			}
			return killed
		})
	})
}

func takeover(t *testing.T, kill func(*world, *process) time.Time) {
	const bound = 15 * time.Second
	t.Parallel() // most of it is waiting for a session to end
	w := newWorld(t, 6, failSome)
	webhooks := w.webhookOfEach()
	a := w.start("a")
	w.start("b")
	before := w.membership("a", "b")
	stop := w.stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	killed := kill(w, a)
	var took []time.Duration
	for p, at := range w.first("b", killed, before.members["a"].numbers) {
		if !slices.Contains(before.members["a"].numbers, p) {
			continue
		}
		took = append(took, at.Sub(killed))
		if at.Sub(killed) > bound {
			t.Errorf("number %d was delivered on %s after the kill, want %s at most", p, at.Sub(killed), bound)
		}
	}
	slices.Sort(took)
	t.Logf("%d numbers taken over: from the kill to the next attempt %s to %s", len(took), took[0], took[len(took)-1])
	stop()
	w.finish()
}

// killInside kills a dispatcher whose transaction is open and has offsets in it:
// all that is missing is its end.
func (w *world) killInside(p *process) time.Time {
	w.t.Helper()
	if w.cluster.Fake == nil {
		return w.stopInside(p)
	}
	killed := make(chan time.Time)
	w.cluster.Fake.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if end := r.(*kmsg.EndTxnRequest); end.TransactionalID != w.transactionalID(p.instance) || !end.Commit {
			return nil, nil, false
		}
		at := p.kill()
		go func() { killed <- at }()
		return nil, errors.New("it is dead"), true // the request has never arrived
	})
	select {
	case at := <-killed:
		return at
	case <-w.ctx.Done():
		w.must(w.ctx.Err(), "waiting for the end of a transaction")
		return time.Time{}
	}
}

// stopInside does it without a hand in the broker: it stops the process (SIGSTOP)
// again and again, until it is found between the answer to its TxnOffsetCommit and
// its EndTxn. What was on its way to the broker arrives all the same, so it is
// looked at twice before it dies.
func (w *world) stopInside(p *process) time.Time {
	w.t.Helper()
	for {
		w.must(p.signal(syscall.SIGSTOP), "stopping a process")
		if w.holdsOffsets(p) {
			w.pause(200 * time.Millisecond)
			if w.holdsOffsets(p) {
				return p.kill()
			}
		}
		w.must(p.signal(syscall.SIGCONT), "letting a process go on")
		w.pause(rand.N(100 * time.Millisecond))
	}
}

func (w *world) transactionalID(instance string) string { return w.group + "-" + instance }

// holdsOffsets: whether a transaction of p is open, and a consumer that asks for
// the group's offsets is told to wait for it.
func (w *world) holdsOffsets(p *process) bool {
	w.t.Helper()
	adm := kadm.NewClient(w.client)
	id := w.transactionalID(p.instance)
	described, err := adm.DescribeTransactions(w.ctx, id)
	w.must(err, "describing a transaction")
	if described[id].State != "Ongoing" {
		return false
	}
	offsets, err := adm.FetchOffsets(kadm.RequireStable(w.ctx), w.group)
	w.must(err, "fetching offsets")
	held := false
	offsets.Each(func(o kadm.OffsetResponse) { held = held || errors.Is(o.Err, kerr.UnstableOffsetCommit) })
	return held
}
