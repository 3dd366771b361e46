package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// What the numbers hold is what the metrics say.
func TestInventory(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		webhooks := w.onEach(2, neverPauses)
		w.webhook("paused")
		w.webhook("failing", neverPauses)
		w.receiver.Answer("failing", kafkatest.Always(500))
		for _, id := range webhooks {
			w.receiver.Answer(id, kafkatest.After(20*time.Second, kafkatest.Always(200)))
		}
		a := w.start("a", func(o *Options) { o.EventTypes = []string{"test.happened"} })
		a.owns(0, 1)
		w.do("paused", record.ActionPause)
		w.send("paused", 0, 7)
		w.send("failing", 0, 3)
		w.until("they wait for their second attempts", func() bool { return len(w.retries("failing")) == 3 })
		for _, id := range webhooks {
			w.send(id, 0, 5)
		}
		time.Sleep(time.Second)
		for _, c := range []struct {
			name   string
			labels []string
			want   float64
		}{
			{"owned_partitions", nil, 2},
			{"webhooks_paused", nil, 1},
			{"parked_records", nil, 7},
			{"in_flight", nil, 2},
			{"slots", []string{"suspect"}, 2},
			{"slots", []string{"proven"}, 0},
			{"lanes", nil, 2},
			{"retry_waiting", []string{"2s"}, 3},
			{"retry_waiting", []string{"4s"}, 0},
			{"attempts_total", []string{"failed"}, 3},
			{"attempts_total", []string{"test.happened"}, 3},
		} {
			if got := a.metric(c.name, c.labels...); got != c.want {
				t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
			}
		}
		if got := a.metric("buffered_bytes"); got <= 0 {
			t.Errorf("buffered_bytes is %v", got)
		}
		if got := a.metric("backlog"); got < 8 {
			t.Errorf("backlog is %v, want the 8 that are queued, at least", got)
		}
	})
}

// Attempts of less than a millisecond take time too.
func TestDurationOfShortAttempts(t *testing.T) {
	inWorld(t, 1, kafkatest.After(300*time.Microsecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 10)
		w.until("they are delivered", func() bool { return len(w.delivered("w")) == 10 })
		if n, sum := a.metric("attempt_duration_seconds"), a.sum("attempt_duration_seconds"); n != 10 || sum < 0.0029 || sum > 0.004 {
			t.Errorf("%v attempts took %v s in all, want 10 of 300 µs each", n, sum)
		}
	})
}

// The backlog is what is to be done: markers, and what an upstream service has aborted, are none of it once they were seen.
func TestBacklogEnds(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		id := w.onEach(2)[1]
		a := w.start("a")
		a.owns(0, 1)
		upstream := w.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("upstream"))
		if err := upstream.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := upstream.ProduceSync(t.Context(), w.event(id, 0), w.event(id, 1)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := upstream.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		moved := w.event(id, 2)
		moved.Partition = 0
		w.produce(moved)
		w.until("it is delivered", func() bool { return len(w.delivered(id)) == 1 })
		a.quiesce()
		if got := a.metric("backlog"); got != 0 {
			t.Errorf("backlog is %v, and nothing is to be done", got)
		}
	})
}

// attempts.successes: what is left out of the log is delivered all the same; failures always have their record.
func TestSuccessesOff(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses)
		a := w.start("a", func(o *Options) { o.Attempts.Successes = "off" })
		a.owns(0)
		w.send("w", 0, 5)
		w.until("all are sent twice", func() bool { return len(w.receiver.Of("w")) == 10 })
		a.quiesce()
		w.counts("w", 10, 5, 5)
		time.Sleep(time.Minute)
		w.counts("w", 10, 5, 5)
	})
}
