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

	"github.com/reenvio/reenvio/e2e/procs"
)

// TestTakeover: the numbers of a dispatcher that died for good are delivered on by
// another within 15 s.
func TestTakeover(t *testing.T) {
	t.Parallel() // most of it is waiting for a session to end
	t.Run("between transactions", func(t *testing.T) {
		takeover(t, func(_ *world, p *procs.Process) time.Time { return p.Kill() })
	})
	t.Run("inside a transaction", func(t *testing.T) {
		takeover(t, func(w *world, p *procs.Process) time.Time {
			killed := w.killInside(p)
			if !w.holdsOffsets(p) {
				t.Fatal("the dead dispatcher's transaction does not hold its offsets")
			}
			return killed
		})
	})
	t.Run("of one that is stopped and goes on", func(t *testing.T) {
		takeover(t, (*world).freeze, (*world).thaw)
	})
}

// takeover ends a dispatcher, and waits until another has its numbers; after that may come more.
func takeover(t *testing.T, kill func(*world, *procs.Process) time.Time, after ...func(*world, *procs.Process)) {
	const bound = 15 * time.Second
	t.Parallel()
	w := newWorld(t, 6, failSome)
	webhooks := w.WebhookOfEach()
	a := w.Start("a")
	w.Start("b")
	before := w.Membership("a", "b")
	stop := w.Stream(100*time.Millisecond, webhooks)
	defer stop()
	w.delivering(before, time.Time{})
	killed := kill(w, a)
	var took []time.Duration
	for p, at := range w.first("b", killed, before.Members["a"].Numbers) {
		if !slices.Contains(before.Members["a"].Numbers, p) {
			continue
		}
		took = append(took, at.Sub(killed))
		if at.Sub(killed) > bound {
			t.Errorf("number %d was delivered on %s after the kill, want %s at most", p, at.Sub(killed), bound)
		}
	}
	slices.Sort(took)
	t.Logf("%d numbers taken over: from the kill to the next attempt %s to %s", len(took), took[0], took[len(took)-1])
	for _, do := range after {
		do(w, a)
	}
	stop()
	w.finish()
}

// killInside kills a dispatcher whose transaction is open and has offsets in it:
// all that is missing is its end.
func (w *world) killInside(p *procs.Process) time.Time {
	w.T.Helper()
	if w.Cluster.Fake == nil {
		return w.stopInside(p)
	}
	killed := make(chan time.Time)
	w.Cluster.Fake.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if end := r.(*kmsg.EndTxnRequest); end.TransactionalID != w.TransactionalID(p.Instance) || !end.Commit {
			return nil, nil, false
		}
		at := p.Kill()
		go func() { killed <- at }()
		return nil, errors.New("it is dead"), true // the request has never arrived
	})
	select {
	case at := <-killed:
		return at
	case <-w.Ctx.Done():
		w.Must(w.Ctx.Err(), "waiting for the end of a transaction")
		return time.Time{}
	}
}

// stopInside does it without a hand in the broker: it stops the process (SIGSTOP)
// again and again, until it is found between the answer to its TxnOffsetCommit and
// its EndTxn. What was on its way to the broker arrives all the same, so it is
// looked at twice before it dies.
func (w *world) stopInside(p *procs.Process) time.Time {
	w.T.Helper()
	for {
		w.Must(p.Signal(syscall.SIGSTOP), "stopping a process")
		if w.holdsOffsets(p) {
			w.Pause(200 * time.Millisecond)
			if w.holdsOffsets(p) {
				return p.Kill()
			}
		}
		w.Must(p.Signal(syscall.SIGCONT), "letting a process go on")
		w.Pause(rand.N(100 * time.Millisecond))
	}
}

// holdsOffsets: whether a transaction of p is open, and a consumer that asks for
// the group's offsets is told to wait for it.
func (w *world) holdsOffsets(p *procs.Process) bool {
	w.T.Helper()
	adm := kadm.NewClient(w.Client)
	id := w.TransactionalID(p.Instance)
	described, err := adm.DescribeTransactions(w.Ctx, id)
	w.Must(err, "describing a transaction")
	if described[id].State != "Ongoing" {
		return false
	}
	offsets, err := adm.FetchOffsets(kadm.RequireStable(w.Ctx), w.Group)
	w.Must(err, "fetching offsets")
	held := false
	offsets.Each(func(o kadm.OffsetResponse) { held = held || errors.Is(o.Err, kerr.UnstableOffsetCommit) })
	return held
}
