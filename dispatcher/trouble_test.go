package dispatcher

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// trouble is something that Kafka has for a while.
type trouble struct {
	begin func(*troubled) (end func())
	lasts time.Duration
	// stops: while it lasts nothing can be committed, so no request starts once
	// outcomes have waited for max_uncommitted.
	stops bool
	// ready is what readiness says meanwhile, among other things; nothing: it is ready
	// all the time.
	ready []string
	// leaves: the membership in the group may get lost over it. Then what could not be
	// committed is sent again.
	leaves bool
	// older: it is tried on a broker with the older transaction protocol too (before KIP-890).
	older bool
}

// troubled is the dispatcher that has to cope.
type troubled struct {
	*world
	p    *process
	gate *kafkatest.Gate
}

// While Kafka has trouble, requests stop when their outcomes can't be written, and
// readiness says what is wrong; liveness does not, for a restart would mend nothing.
// When it is over all goes on by itself: nothing is lost, no chain doubled, and no
// request made again.
func TestKafkaTrouble(t *testing.T) {
	for name, what := range troubles {
		run := func(name string, opts ...kfake.Opt) {
			t.Run(name, func(t *testing.T) {
				inWorld(t, 2, kafkatest.After(100*time.Millisecond, kafkatest.FailSome(0.4, 2)), what.survive, opts...)
			})
		}
		run(name)
		if what.older {
			run(name+", transaction version 1", kfake.MaxVersions(kversion.V3_8_0()))
		}
	}
}

func (what trouble) survive(t *testing.T, w *world) {
	const n = 40 // more than go out before max_uncommitted stops them
	ids := w.onEach(2, neverPauses)
	var gate *kafkatest.Gate
	var log bytes.Buffer
	p := w.start("a", func(o *Options) {
		gate = kafkatest.NewGate(o.Kafka.Dial)
		o.Kafka.Dial = gate.Dial
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	// A network takes time: a client that is told to ask again would else do so without any passing.
	p.host.Delay(100*time.Microsecond, w.cluster.Brokers...)
	p.owns(0, 1)
	p.quiesce()
	says(t, "ready before", p.d.Ready())
	for _, id := range ids {
		w.send(id, 0, n)
	}
	w.until("some are delivered", func() bool { return len(w.receiver.Requests()) > 10 })

	end := what.begin(&troubled{w, p, gate})
	began := time.Now()
	var said []string
	for time.Since(began) < what.lasts {
		time.Sleep(what.lasts / 50)
		says(t, "live", p.d.Live())
		said = append(said, p.d.Ready()...)
	}
	started := func(after time.Duration) (count int) {
		for _, r := range w.receiver.Requests() {
			if r.Start.Sub(began) > after {
				count++
			}
		}
		return count
	}
	// The last cycle before may have taken all there was.
	limit := p.d.cfg.MaxUncommitted + p.d.cfg.Cycle + 100*time.Millisecond
	switch got := started(limit); {
	case what.stops && got > 0:
		t.Errorf("%d requests started more than %s after the trouble began", got, limit)
	case !what.stops && got == 0:
		t.Errorf("no request started more than %s after the trouble began", limit)
	}
	atRisk := started(-time.Second)
	if age, least := p.metric("uncommitted_seconds"), (what.lasts - 3*time.Second).Seconds(); what.stops && !what.leaves && age < least {
		t.Errorf("the metric says that the oldest outcome has waited for %v s, want %v at least", age, least)
	}
	end()
	says(t, "ready in the trouble", said, what.ready...)

	time.Sleep(20 * time.Second) // which costs less than to look again and again
	for _, id := range ids {
		w.until("all of "+id+" are delivered", func() bool { return len(w.delivered(id)) >= n })
	}
	p.quiesce()
	time.Sleep(10 * time.Second)
	says(t, "ready after", p.d.Ready())
	says(t, "live after", p.d.Live())
	if stopped, again := strings.Count(log.String(), "no request starts"), strings.Count(log.String(), "requests start again"); what.stops && (stopped != 2 || again != 2 && !what.leaves) {
		t.Errorf("it is said %d times that nothing starts, %d times that it does again; want once of each number", stopped, again)
	}
	requests, attempts := 0, 0
	for _, id := range ids {
		delivered, want := w.delivered(id), eventIDs(id, 0, n)
		slices.Sort(delivered)
		slices.Sort(want)
		mustEqual(t, "delivered to "+id, delivered, want)
		w.oneChain(id)
		requests += len(w.receiver.Of(id))
		attempts += len(w.attempts(id))
	}
	if again := requests - attempts; again < 0 || again > 0 && !what.leaves || again > atRisk {
		t.Errorf("%d requests were made again; %d were at risk", again, atRisk)
	}
	if dead := w.dead(); len(dead) > 0 {
		t.Errorf("%d are dead, the first for %s: %s", len(dead), dead[0].Reason, dead[0].Message)
	}
}

// ours are the produce requests of transactions: the test's own go through.
func ours(r kmsg.Request) bool { return r.(*kmsg.ProduceRequest).TransactionID != nil }

func (w *troubled) refuse(f kfake.Fault) func() {
	f.Count = -1
	return w.cluster.Fake.Fault(f).Remove
}

func refusesWrites(err *kerr.Error) func(*troubled) func() {
	return func(w *troubled) func() {
		return w.refuse(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, When: ours})
	}
}

const uncommitted = "outcomes could not be committed for"

var troubles = map[string]trouble{
	"all brokers are gone": {
		begin: func(w *troubled) func() { w.gate.Shut(); return w.gate.Open },
		lasts: 2 * time.Minute, stops: true, leaves: true, older: true,
		ready: []string{"the group has not acknowledged this member", "a Kafka broker can't be reached: "},
	},
	"a broker is gone":       {begin: brokerGone(0), lasts: 10 * time.Second},
	"another broker is gone": {begin: brokerGone(1), lasts: 10 * time.Second},
	"the third one is gone":  {begin: brokerGone(2), lasts: 10 * time.Second},
	"the coordinators move": {
		begin: func(w *troubled) func() { return w.again(w.cluster.Fake.RehashCoordinators) },
		lasts: 5 * time.Second, older: true,
	},
	"the leaders move": {
		begin: func(w *troubled) func() { return w.again(w.cluster.Fake.ShufflePartitionLeaders) },
		lasts: 5 * time.Second,
	},
	"too few replicas are in sync": {
		begin: refusesWrites(kerr.NotEnoughReplicas),
		lasts: 40 * time.Second, stops: true, ready: []string{uncommitted, "NOT_ENOUGH_REPLICAS"},
	},
	// What was appended must not be written again, so it is asked for until the coordinator gives the transaction up.
	"a transaction times out": {
		begin: refusesWrites(kerr.NotEnoughReplicasAfterAppend),
		lasts: transactionTimeout + 15*time.Second, stops: true, older: true, ready: []string{uncommitted},
	},
	"the disk is full": {
		begin: refusesWrites(kerr.KafkaStorageError),
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted, "KAFKA_STORAGE_ERROR"},
	},
	"writing is not allowed": {
		begin: refusesWrites(kerr.TopicAuthorizationFailed),
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted, "TOPIC_AUTHORIZATION_FAILED"},
	},
	"a policy is violated": {
		begin: refusesWrites(kerr.PolicyViolation),
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted, "POLICY_VIOLATION"},
	},
	"a clock is far off": {
		begin: refusesWrites(kerr.InvalidTimestamp),
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted, "INVALID_TIMESTAMP"},
	},
	"transactions are not allowed": {
		begin: func(w *troubled) func() {
			return w.refuse(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn, kmsg.InitProducerID}, Err: kerr.TransactionalIDAuthorizationFailed})
		},
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted},
	},
	"offsets can't be committed": {
		begin: func(w *troubled) func() {
			return w.refuse(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.CoordinatorLoadInProgress})
		},
		lasts: 10 * time.Second, stops: true, ready: []string{uncommitted},
	},
	"each request takes 100 ms": {begin: slower(50 * time.Millisecond), lasts: 5 * time.Second},
	"each request takes half a second": {
		begin: slower(250 * time.Millisecond),
		lasts: 20 * time.Second, ready: []string{uncommitted},
	},
}

func slower(d time.Duration) func(*troubled) func() {
	return func(w *troubled) func() {
		w.p.host.Delay(d, w.cluster.Brokers...)
		return func() { w.p.host.Delay(100*time.Microsecond, w.cluster.Brokers...) }
	}
}

func brokerGone(i int) func(*troubled) func() {
	return func(w *troubled) func() {
		w.cluster.KillBroker(w.t, i)
		return func() { w.cluster.StartBroker(w.t, i) }
	}
}

// again does something each half second.
func (w *troubled) again(do func()) (end func()) {
	done := make(chan struct{})
	var doing sync.WaitGroup
	doing.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(500 * time.Millisecond):
				do()
			}
		}
	})
	return func() { close(done); doing.Wait() }
}

// A topic that takes none of our records for what they are (INVALID_RECORD: it is compacted, and they have no key) costs the
// events that would go there, each with a dead letter, and nobody else.
func TestInvalidRecord(t *testing.T) {
	inWorld(t, 1, kafkatest.FailSome(0.4, 1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		const n = 20
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.topo.Retry(2 * time.Second), Err: kerr.InvalidRecord, Count: -1})
		w.send("w", 0, n)
		w.until("all have ended", func() bool { return len(w.delivered("w"))+len(w.dead()) == n })
		p.quiesce()
		failed := 0
		for i := range n {
			if kafkatest.Chosen(eventID("w", i), 0.4) {
				failed++
			}
		}
		for _, d := range w.dead() {
			if d.Reason != record.TooLarge || !strings.Contains(d.Message, "could not be written to "+w.topo.Retry(2*time.Second)) {
				t.Errorf("%s died as %s: %s", d.ID, d.Reason, d.Message)
			}
		}
		if got := len(w.dead()); got != failed {
			t.Errorf("%d are dead, want the %d that failed", got, failed)
		}
		w.counts("w", n, n+failed, 0)
		says(t, "ready", p.d.Ready())
	})
}
