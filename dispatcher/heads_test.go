package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A head whose record is passed over, by --from or by retention, keeps nobody waiting for ever.
func TestHeadPassedOver(t *testing.T) {
	latest, err := ParseFrom("latest")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		passOver func(w *world)
		from     From
		want     []string
	}{
		"from":      {func(w *world) { w.expire() }, latest, []string{"w-0/1", "w-2/1"}},
		"retention": {func(w *world) { w.deleteRecords(w.topo.Retry(16*time.Second), 0) }, From{}, []string{"w-0/1", "w-1/1", "w-2/1"}},
		"neither":   {func(*world) {}, From{}, []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1"}},
		// The committed offset lies before the marker behind the last record, and what is left of the topic behind it.
		"retention of what was read": {func(w *world) { w.deleteRecords(w.topo.Retry(2*time.Second), 0) }, From{}, []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w", inOrder(record.OrderStrict), func(e *record.Endpoint) {
					e.Schedule = []record.Duration{record.Duration(time.Minute)}
				})
				w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 0))
				w.webhook("other")
				w.receiver.Answer("other", kafkatest.FailFirst(1))
				a := w.start("a")
				a.owns(0)
				w.send("other", 0, 1)
				w.until("its retry is delivered", func() bool { return len(w.delivered("other")) == 1 })
				w.send("w", 0, 2)
				w.until("the first has failed", func() bool { return len(w.attempts("w")) == 1 })
				time.Sleep(20 * time.Second) // it has hopped once
				a.stop()
				if err := a.wait(); err != nil {
					t.Fatal(err)
				}
				c.passOver(w)
				w.start("b", func(o *Options) { o.From = c.from }).owns(0)
				w.send("w", 2, 1)
				time.Sleep(5 * time.Minute)
				mustEqual(t, "requests", w.starts("w"), c.want)
			})
		})
	}
}

// The same of one whose first request was in flight when its owner died, before its followers, which are parked.
func TestFirstRequestPassedOver(t *testing.T) {
	latest, err := ParseFrom("latest")
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, 1, slowOnce, func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 3)
		w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.until("two are parked", func() bool { return len(w.parked("w")) == 2 })
		a.quiesce()
		a.kill()
		time.Sleep(time.Minute)
		w.expire()
		w.start("b", func(o *Options) { o.From = latest }).owns(0)
		w.do("w", record.ActionResume)
		time.Sleep(5 * time.Minute)
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-1/1", "w-2/1"})
	})
}

// deleteRecords is what retention does: all of a topic's partition is gone.
func (w *world) deleteRecords(topic string, p int32) {
	w.t.Helper()
	adm := kadm.NewClient(w.client)
	ends, err := adm.ListEndOffsets(w.t.Context(), topic)
	if err != nil {
		w.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, p)
	if _, err := adm.DeleteRecords(w.t.Context(), kadm.Offsets{topic: {p: {Topic: topic, Partition: p, At: end.Offset}}}); err != nil {
		w.t.Fatal(err)
	}
}
