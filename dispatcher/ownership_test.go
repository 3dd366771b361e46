package dispatcher

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// joinsAs matches the next joins of one instance.
func joinsAs(instance string) func(kmsg.Request) bool {
	return func(r kmsg.Request) bool {
		id := r.(*kmsg.JoinGroupRequest).InstanceID
		return id != nil && *id == instance
	}
}

// commitsOf matches the offset commits of one instance's transactions.
func commitsOf(instance string) func(kmsg.Request) bool {
	return func(r kmsg.Request) bool {
		id := r.(*kmsg.TxnOffsetCommitRequest).InstanceID
		return id != nil && *id == instance
	}
}

// heartbeatsOf matches the heartbeats of one instance.
func heartbeatsOf(instance string) func(kmsg.Request) bool {
	return func(r kmsg.Request) bool {
		id := r.(*kmsg.HeartbeatRequest).InstanceID
		return id != nil && *id == instance
	}
}

// The coordinator has forgotten a member, and kgo joins again under a new id without a word:
//
//  1. a decides something in number 0, and can't commit it yet;
//  2. a rebalance: its join is answered UNKNOWN_MEMBER_ID, it joins with a new id and is given number 0 again;
//  3. committing is possible again. What was decided in the old life must not be committed with the new pair.
func TestNewMemberIDBeginsNewLives(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		old := a.number(0)
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })

		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: kerr.UnknownMemberID, When: joinsAs("a")})
		a.d.group.ForceRebalance()
		w.until("number 0 is in a new life", func() bool { n := a.number(0); return n != nil && n != old && n.started.Load() })
		if a.number(0).member == old.member {
			t.Fatal("the new life has the old member id: this test shows nothing")
		}
		stuck.Remove()
		w.until("it is delivered", func() bool { return len(w.delivered("w")) >= 1 })
		time.Sleep(time.Minute)

		w.oneChain("w")
		w.counts("w", 2, 1, 0) // the second life has made the same attempt again
		for _, r := range w.receiver.Of("w") {
			if r.Attempt != 1 {
				t.Errorf("sent as attempt %d", r.Attempt)
			}
		}
	})
}

// The same, and the cycle gets its chance between the new id and the assignment that comes with it.
func TestNoCommitBetweenMemberIDAndAssignment(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		old := a.number(0).member
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })

		goOn := make(chan struct{})
		w.cluster.Fake.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.DropControl()
			w.cluster.Fake.SleepControl(func() { <-goOn })
			return nil, nil, false
		})
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: kerr.UnknownMemberID, When: joinsAs("a")})
		a.d.group.ForceRebalance()
		w.until("a has a new member id", func() bool { member, _ := a.d.group.GroupMetadata(); return member != "" && member != old })
		member, _ := a.d.group.GroupMetadata()
		commits := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			return r.(*kmsg.TxnOffsetCommitRequest).MemberID == member
		}})
		stuck.Remove()
		time.Sleep(3 * time.Second)
		if commits.Hits() > 0 {
			t.Errorf("%d commits with the new member id, before anything was assigned under it", commits.Hits())
		}
		close(goOn)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) >= 1 })
		w.oneChain("w")
	})
}

// A membership that is lost takes all with it: requests are cut, decisions forgotten, and the same attempt is made again.
func TestLostMembership(t *testing.T) {
	inWorld(t, 1, kafkatest.After(3*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("quick")
		w.receiver.Answer("quick", kafkatest.Always(200))
		w.webhook("slow")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		old := a.number(0)
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.send("quick", 0, 1)
		w.send("slow", 0, 1)
		w.until("both are sent", func() bool { return len(w.receiver.Requests()) == 2 })

		forgotten := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID, Count: -1})
		w.until("the life is lost", func() bool { return a.number(0) != old })
		forgotten.Remove()
		stuck.Remove()
		w.until("both are delivered", func() bool { return len(w.delivered("quick"))+len(w.delivered("slow")) == 2 })
		time.Sleep(time.Minute)

		w.oneChain("quick")
		w.counts("quick", 2, 1, 0)
		w.counts("slow", 2, 1, 0)
		if r := w.receiver.Of("slow")[0]; r.Status != 0 {
			t.Errorf("the request of the lost life was answered %d, want it cut", r.Status)
		}
	})
}

// The coordinator has expelled a member while it gives a number up. All that it has is
// lost at once: kgo, which would say so, waits for the number in its callback.
//
//  1. a number of a's is to go to b, and a has a request in flight in it;
//  2. the coordinator forgets a, and gives its numbers away;
//  3. a must not wait for the request, nor for a cycle that will never be accepted.
func TestExpelledWhileGivingUp(t *testing.T) {
	inWorld(t, 2, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		webhooks := w.onEach(2)
		a := w.start("a")
		a.owns(0, 1)
		a.quiesce()
		for _, id := range webhooks {
			w.send(id, 0, 1)
		}
		w.until("both are sent to", func() bool { return len(w.receiver.Requests()) == 2 })
		lives := []*number{a.number(0), a.number(1)}
		w.start("b")
		w.until("a gives one up", func() (draining bool) {
			for p := range int32(2) {
				a.look(p, func(n *number) { draining = draining || n.draining })
			}
			return draining
		})
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID, Count: 3, When: heartbeatsOf("a")})
		expelled := time.Now()
		w.until("all is lost", func() bool { return lives[0].ctx.Err() != nil && lives[1].ctx.Err() != nil })
		if took := time.Since(expelled); took > 2*time.Second {
			t.Errorf("a held on to it for %s", took)
		}
		w.until("both are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 2 })
		for _, id := range webhooks {
			w.oneChain(id)
		}
	})
}

// The pair that was frozen with a batch goes with its commit, and no fresher one:
// the group client learns a new generation before it knows what it was assigned.
func TestFrozenPairGoesWithTheCommit(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		_, generation := a.d.group.GroupMetadata()

		reached, goOn := make(chan struct{}), make(chan struct{})
		w.cluster.Fake.ControlKey(int16(kmsg.AddOffsetsToTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.DropControl()
			close(reached)
			w.cluster.Fake.SleepControl(func() { <-goOn })
			return nil, nil, false
		})
		var generations []int32
		w.cluster.Fake.ControlKey(int16(kmsg.TxnOffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
			generations = append(generations, r.(*kmsg.TxnOffsetCommitRequest).Generation)
			return nil, nil, false
		})
		w.send("w", 0, 3)
		<-reached
		a.d.group.ForceRebalance()
		w.until("a new generation", func() bool { _, g := a.d.group.GroupMetadata(); return g > generation })
		close(goOn)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 3 })
		time.Sleep(time.Minute)

		if len(generations) < 2 || generations[0] != generation || generations[1] != generation+1 {
			t.Errorf("committed with generations %v, want first the frozen one, %d, which is refused, then the next", generations, generation)
		}
		w.oneChain("w")
		w.counts("w", 6, 6, 3)
	})
}

// A life that follows another of the same number here waits until the requests of
// that one have ended: a webhook must not have two in flight.
func TestNewLifeWaitsForOldRequests(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		topics := map[string][]int32{}
		for _, topic := range a.d.topics {
			topics[topic] = []int32{0}
		}
		a.d.ownership.onLost(t.Context(), a.d.group, topics)
		stillRuns := make(chan struct{})
		end := sync.OnceFunc(func() { close(stillRuns) })
		defer end() // or a test that has failed would wait for ever
		a.d.ownership.mu.Lock()
		a.d.ownership.former[0] = stillRuns
		a.d.ownership.mu.Unlock()
		a.d.ownership.onAssigned(t.Context(), a.d.group, topics)

		// Also when a life in between has waited in vain.
		for range 2 {
			time.Sleep(time.Minute)
			if n := a.number(0); n == nil || n.started.Load() {
				t.Fatal("the new life has not waited")
			}
			a.d.ownership.onLost(t.Context(), a.d.group, topics)
			a.d.ownership.onAssigned(t.Context(), a.d.group, topics)
		}
		end()
		a.owns(0)
	})
}

// A life is ended only when its requests have ended: whoever comes next waits for that.
func TestLifeEndsAfterItsRequests(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Minute, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		n := a.number(0)
		n.running.Add(1) // as a request that does not heed its context
		n.cancel(errLost)
		time.Sleep(time.Minute)
		select {
		case <-n.done:
			t.Error("the life has ended with a request in flight")
		default:
		}
		if n.inFlight.Load() != 1 || w.receiver.Of("w")[0].End.IsZero() {
			t.Error("the request that heeds its context was not cut")
		}
		n.running.Done()
		<-n.done
	})
}
