package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// A stop while nobody knows us: the member id was refused, the next one has not
// come. The last cycle can't be committed, and waiting for it must neither go on for
// ever nor burn the processor (in a bubble that would never end).
func TestStopBetweenMemberIDs(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a", func(o *Options) { o.Config.DrainTimeout = 5 * time.Second })
		a.owns(0)
		a.quiesce()
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })

		goOn := make(chan struct{})
		w.cluster.Fake.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if r.(*kmsg.JoinGroupRequest).MemberID == "" {
				w.cluster.Fake.DropControl()
				w.cluster.Fake.SleepControl(func() { <-goOn })
			}
			return nil, nil, false
		})
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: kerr.UnknownMemberID, When: joinsAs("a")})
		a.d.group.ForceRebalance()
		w.until("the member id is gone", func() bool { member, _ := a.d.group.GroupMetadata(); return member == "" })
		began := time.Now()
		a.stop()
		if err := a.wait(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("the stop took %s", took)
		}
		close(goOn)
		synctest.Wait() // the late join comes before that of the successor, whose place it would take
		stuck.Remove()
		w.start("a").owns(0)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		w.oneChain("w")
	})
}

// A stop of a member that the coordinator has expelled: its last cycle will never be
// accepted, so nothing is gained by trying it again and again.
func TestStopOfAnExpelled(t *testing.T) {
	inWorld(t, 1, kafkatest.After(20*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		w.send("w", 0, 1)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.UnknownMemberID, Count: -1, When: commitsOf("a")})
		began := time.Now()
		a.stop()
		if err := a.wait(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("the stop took %s, though its request had ended after 20s", took)
		}
		w.start("b").owns(0)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		w.oneChain("w")
	})
}

// A stop while the brokers are gone, for a moment or for longer than kgo believes in its membership, ends
// all the same, before supervisors kill; and what was not committed is sent again by the next.
func TestStopWithoutBrokers(t *testing.T) {
	const drain = 5 * time.Second
	for _, gone := range []time.Duration{0, 40 * time.Second, 55 * time.Second, 90 * time.Second} {
		t.Run(gone.String(), func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.start("a", func(o *Options) { o.Config.DrainTimeout = drain })
				a.owns(0)
				a.quiesce()
				w.send("w", 0, 1)
				w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
				a.host.Cut(w.cluster.Brokers...)
				time.Sleep(gone)
				began := time.Now()
				a.stop()
				if err := a.wait(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > drain+20*time.Second {
					t.Errorf("the stop took %s, and supervisors kill 20s after the drain of %s", took, drain)
				}
				a.host.Heal(w.cluster.Brokers...)
				w.start("a").owns(0)
				w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
				w.oneChain("w")
			})
		})
	}
}
