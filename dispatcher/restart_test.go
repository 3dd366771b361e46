package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// What is done beyond an event that is still in flight is not done again by who
// comes after a crash: the commit's metadata names it.
func TestRestartSkipsWhatIsDone(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("slow", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		w.receiver.Answer("slow", slowFirst(100*time.Second))
		w.webhook("quick")
		a := w.startQuietly("a")
		a.owns(0)
		w.send("slow", 0, 1)
		w.until("the slow one is sent", func() bool { return len(w.receiver.Of("slow")) == 1 })
		w.send("quick", 0, 100)
		w.until("the quick ones are delivered", func() bool { return len(w.delivered("quick")) == 100 })
		a.quiesce()
		a.kill()
		b := w.start("a", func(o *Options) { o.Kafka.Dial, o.Transport.Dial = w.cluster.Dial, w.cluster.Dial })
		b.owns(0)
		w.until("the slow one is delivered", func() bool { return len(w.delivered("slow")) == 1 })
		time.Sleep(time.Minute)
		w.counts("quick", 100, 100, 0)
		w.counts("slow", 2, 1, 0)
	})
}

// A number whose last cycle can't be committed is given up all the same, in the
// time that the group waits; nothing of it is committed later, and nothing is lost.
func TestReleaseGivesUp(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		webhooks := w.onEach(2)
		short := func(o *Options) { o.Config.DrainTimeout = 2 * time.Second }
		a := w.start("a", short)
		a.owns(0, 1)
		a.quiesce()
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1, When: commitsOf("a")})
		for _, id := range webhooks {
			w.send(id, 0, 3)
		}
		w.until("all are sent", func() bool { return len(w.receiver.Requests()) == 6 })
		began := time.Now()
		b := w.start("b", short)
		number := moved(w, a, b)
		if took := time.Since(began); took < settleTime || took > 2*time.Second+rebalanceMargin {
			t.Errorf("the number was released after %s, want a little more than %s", took, settleTime)
		}
		stuck.Remove()
		w.until("all are delivered", func() bool { return len(w.delivered(webhooks[0]))+len(w.delivered(webhooks[1])) == 6 })
		time.Sleep(time.Minute)
		w.counts(webhooks[number], 6, 3, 0)
		w.counts(webhooks[1-number], 3, 3, 0)
		for _, id := range webhooks {
			w.oneChain(id)
		}
	})
}

// A retry topic that exists, and is not configured any more, is drained.
func TestFormerTierIsDrained(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		former, err := topology.New(topology.Config{Prefix: w.topo.Prefix(), Partitions: 1, Replication: 3}, append(w.topo.Tiers(), time.Minute), 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.CreateTopics(t, former)
		w.webhook("w")
		d := record.Delivery{Event: record.Event{Webhook: "w", ID: "old"}, Key: []byte("w"), Attempts: 4, Source: record.Source{Topic: w.topo.Events()}}
		d.DueAt = record.At(time.Now().Add(15 * time.Second))
		w.produce(d.RetryRecord(former.Retry(time.Minute), 0))
		began := time.Now()
		a := w.start("a")
		a.owns(0)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		if r := w.receiver.Of("w")[0]; r.Attempt != 5 || r.Start.Sub(began) < 14*time.Second || r.Start.Sub(began) > 16*time.Second {
			t.Errorf("sent as attempt %d after %s, want 5 when it is due", r.Attempt, r.Start.Sub(began))
		}
		a.quiesce()
		a.metric("retry_waiting")
	})
}

// The lease comes back without a change of owner: what was cut is sent again as the same attempt.
func TestCutByTheLeaseIsSentAgain(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		w.receiver.Answer("w", slowFirst(100*time.Second))
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		w.send("w", 0, 2)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		life := a.number(0)
		// Heartbeats arrive, and so the membership lasts; their answers come too late.
		a.host.Delay(sessionTimeout/2+100*time.Millisecond, w.cluster.Brokers...)
		time.Sleep(9 * time.Second)
		if r := w.receiver.Of("w")[0]; !r.End.IsZero() {
			t.Errorf("the request was cut %s after it began", r.End.Sub(r.Start))
		}
		time.Sleep(3 * time.Second)
		if r := w.receiver.Of("w")[0]; r.End.IsZero() || r.Status != 0 {
			t.Error("the request goes on though the lease has run out")
		}
		a.host.Delay(0, w.cluster.Brokers...)
		w.until("both are delivered", func() bool { return len(w.delivered("w")) == 2 })
		all := w.receiver.Of("w")
		mustEqual(t, "sent", ids(all), []string{"w-0", "w-0", "w-1"})
		if all[1].Attempt != 1 {
			t.Errorf("sent again as attempt %d, want 1", all[1].Attempt)
		}
		w.oneChain("w")
		if a.number(0) != life {
			t.Error("the number was lost, so this shows nothing")
		}
	})
}

// What waits by a webhook's own schedule is due by it after a restart too, when the configuration is not needed for anything else yet.
func TestScheduleAfterRestart(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(time.Minute)} })
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it has failed", func() bool { return len(w.attempts("w")) == 1 })
		a.quiesce()
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		w.start("b").owns(0)
		w.until("it is tried again", func() bool { return len(w.receiver.Of("w")) == 2 })
		if all := w.receiver.Of("w"); all[1].Start.Sub(all[0].End) < time.Minute {
			t.Errorf("it was tried again after %s, want a minute", all[1].Start.Sub(all[0].End))
		}
	})
}
