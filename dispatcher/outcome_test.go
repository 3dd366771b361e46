package dispatcher

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

func transient(e *record.Endpoint) { e.RetryOn = record.RetryTransient }

// With retry_on: transient a permanent answer is final at once, and 410 pauses the webhook.
func TestFinalAnswers(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("bad", transient)
		w.receiver.Answer("bad", kafkatest.Always(400))
		w.webhook("gone", transient)
		w.receiver.Answer("gone", kafkatest.Always(410))
		a := w.start("a")
		a.owns(0)
		w.send("bad", 0, 1)
		w.send("gone", 0, 3)
		w.until("the bad one is dead", func() bool { return len(w.dead()) == 1 })
		w.until("the gone ones are parked", func() bool { return len(w.parked("gone")) == 3 })
		time.Sleep(time.Minute)
		a.quiesce()
		if d := w.dead(); len(d) != 1 || d[0].Reason != record.PermanentStatus || d[0].LastStatus != 400 || d[0].Attempts != 1 {
			t.Errorf("dead letters %+v", d)
		}
		w.counts("bad", 1, 1, 0)
		w.counts("gone", 1, 1, 0)
		if !w.pausedBy("gone", record.PauseGone) || w.pausedBy("bad", record.PauseGone) {
			t.Error("410 pauses, 400 does not")
		}
		w.receiver.Answer("gone", kafkatest.Always(200))
		w.do("gone", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("gone")) == 3 })
		w.oneChain("gone")
	})
}

// Ten failures in a row pause, retries counted; a late success does not un-pause;
// resume clears the streak, so that the next failure does not pause again.
func TestStreak(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		a.quiesce()
		s := w.state("w")
		if got := len(w.receiver.Of("w")); got != 10 || s.ConsecutiveFailures != 10 || s.LastStatus != 500 || s.StreakStartedAt.IsZero() {
			t.Errorf("%d requests; state %s", got, s.Marshal())
		}
		again := make(chan struct{}, 1)
		w.receiver.Answer("w", func(*kafkatest.Request) kafkatest.Response {
			select {
			case again <- struct{}{}:
				return kafkatest.Response{Status: 500} // the first after the resume
			default:
				return kafkatest.Response{Status: 200}
			}
		})
		w.do("w", record.ActionResume)
		w.until("what is left is delivered", func() bool { return len(w.delivered("w"))+len(w.dead()) == 3 })
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		w.oneChain("w")
	})
}

func TestLateSuccessDoesNotUnpause(t *testing.T) {
	inWorld(t, 1, kafkatest.After(5*time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 2)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		time.Sleep(time.Minute)
		if !w.pausedBy("w", record.PauseManual) || len(w.receiver.Of("w")) != 1 {
			t.Errorf("%d requests; state %+v", len(w.receiver.Of("w")), w.state("w"))
		}
	})
}

// A fault of our own burns no attempt and counts in no streak; it is tried again a second later.
func TestFaultOfOurs(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		var dials atomic.Int32
		a := w.start("a", func(o *Options) {
			dial := o.Transport.Dial
			o.Transport.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) <= 20 {
					return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
				}
				return dial(ctx, network, addr)
			}
		})
		a.owns(0)
		began := time.Now()
		w.send("w", 0, 2)
		w.until("both are delivered", func() bool { return len(w.delivered("w")) == 2 })
		if took := time.Since(began); took < 5*time.Second || took > 30*time.Second {
			t.Errorf("it took %s for 20 dials without a file descriptor", took)
		}
		a.quiesce()
		w.counts("w", 2, 2, 0)
		w.oneChain("w")
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 2))
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}
