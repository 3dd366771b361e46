package dispatcher

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// says checks the reasons of a health check: none, or one with each of the texts.
func says(t *testing.T, what string, reasons []string, want ...string) {
	t.Helper()
	if len(want) == 0 && len(reasons) > 0 {
		t.Errorf("%s: %q, want nothing", what, reasons)
	}
	for _, text := range want {
		if !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, text) }) {
			t.Errorf("%s: %q, want %q among them", what, reasons, text)
		}
	}
}

// While nothing can be committed, outcomes stop piling up after max_uncommitted, and
// readiness says why; liveness does not, for a restart would mend nothing. It goes
// on by itself, and repeats no request.
func TestUncommittedOutcomesStopRequests(t *testing.T) {
	inWorld(t, 1, kafkatest.After(50*time.Millisecond, kafkatest.FailSome(0.3, 1)), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		says(t, "ready", a.d.Ready())
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		began := time.Now()
		w.send("w", 0, 200)
		time.Sleep(30 * time.Second)
		all := w.receiver.Of("w")
		if last := all[len(all)-1].Start.Sub(began); last < time.Second || last > 2*time.Second+100*time.Millisecond {
			t.Errorf("the last request started %s after the first outcome that could not be committed, want nearly 2s", last)
		}
		says(t, "ready", a.d.Ready(), "the last cycle was not committed", "number 0: outcomes could not be committed for")
		says(t, "live", a.d.Live())
		stuck.Remove()
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 200 })
		a.quiesce()
		says(t, "ready", a.d.Ready())
		w.oneChain("w")
		if got, want := len(w.receiver.Of("w")), len(w.attempts("w")); got != want {
			t.Errorf("%d requests, %d attempts on record: some were repeated", got, want)
		}
	})
}

// The brokers are gone: no readiness, but liveness. They come back: it goes on by itself.
func TestBrokersAreGone(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		a.host.Cut(w.cluster.Brokers...)
		time.Sleep(7 * time.Second)
		says(t, "ready", a.d.Ready(), "has not acknowledged this member")
		says(t, "live", a.d.Live())
		time.Sleep(5 * time.Minute)
		says(t, "live", a.d.Live())
		a.host.Heal(w.cluster.Brokers...)
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		a.quiesce()
		says(t, "ready", a.d.Ready())
	})
}

// Before it has joined, and while a number is being restored, it is not ready.
func TestNotReadyYet(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		old := w.cluster.Client(t, kgo.TransactionalID("the old owner"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := old.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := old.ProduceSync(t.Context(), &kgo.Record{Topic: w.topo.State(), Key: []byte("w")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		a := w.start("a")
		says(t, "ready", a.d.Ready(), "not a member of the group yet")
		w.until("it has joined", func() bool { return a.number(0) != nil })
		time.Sleep(2 * time.Second)
		says(t, "ready", a.d.Ready(), "number 0 is starting")
		says(t, "live", a.d.Live())
		if err := old.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		a.owns(0)
		says(t, "ready", a.d.Ready())
	})
}

// A number whose goroutine hangs is a reason to restart; an idle one is not.
func TestStuckNumber(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		for range 100 {
			time.Sleep(7 * time.Second)
			says(t, "live, idle", a.d.Live())
		}
		goOn := make(chan struct{})
		a.number(0).inbox.post(func() { <-goOn })
		time.Sleep(stuckAfter + time.Minute)
		says(t, "live, stuck", a.d.Live(), "number 0 has not turned for")
		close(goOn)
		time.Sleep(idleTurn + time.Second)
		says(t, "live", a.d.Live())
	})
}
