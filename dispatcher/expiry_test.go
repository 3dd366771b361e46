package dispatcher

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// sendUntil produces event i of a webhook with a ce_expirytime.
func (w *world) sendUntil(webhook string, i int, expiry string) {
	w.t.Helper()
	r := w.event(webhook, i)
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: "ce_expirytime", Value: []byte(expiry)})
	w.produce(r)
}

// An event past its ce_expirytime dies without a request, wherever it was waiting:
// it is new, in a lane, in a delay topic, parked. One in flight ends as usual.
func TestExpiry(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		for _, id := range []string{"new", "lane", "flying", "retry", "parked", "paused", "lives"} {
			w.webhook(id)
		}
		a := w.start("a")
		a.owns(0)
		soon := record.At(time.Now().Add(1500 * time.Millisecond)).String()
		slow := kafkatest.After(3*time.Second, kafkatest.Always(200))
		w.receiver.Answer("lane", slow)
		w.receiver.Answer("flying", slow)
		w.receiver.Answer("retry", kafkatest.Always(500))
		w.do("parked", record.ActionPause)
		w.do("paused", record.ActionPause)

		w.sendUntil("new", 0, "1999-02-03T04:05:06+01:00")
		w.send("lane", 0, 1)
		w.sendUntil("lane", 1, soon)
		w.send("lane", 2, 1)
		w.sendUntil("flying", 0, soon)
		w.sendUntil("retry", 0, soon)
		w.sendUntil("parked", 0, soon)
		w.send("parked", 1, 1)
		w.sendUntil("lives", 0, record.At(time.Now().Add(time.Hour)).String())
		w.sendUntil("lives", 1, "some day") // no time: as if it had none
		time.Sleep(2 * time.Second)
		w.sendUntil("paused", 0, soon) // dies rather than be parked
		time.Sleep(time.Minute)
		w.do("parked", record.ActionResume)
		time.Sleep(time.Minute)
		a.quiesce()

		var dead []string
		for _, l := range w.dead() {
			if l.Reason != record.Expired {
				t.Errorf("%s died as %s", l.ID, l.Reason)
			}
			dead = append(dead, l.ID)
		}
		slices.Sort(dead)
		mustEqual(t, "expired", dead, []string{"lane-1", "new-0", "parked-0", "paused-0", "retry-0"})
		for id, want := range map[string][]string{
			"new": nil, "lane": {"lane-0", "lane-2"}, "flying": {"flying-0"}, "retry": nil, "parked": {"parked-1"}, "paused": nil, "lives": {"lives-0", "lives-1"},
		} {
			mustEqual(t, "delivered to "+id, w.delivered(id), want)
		}
		w.counts("new", 0, 1, 0)
		w.counts("retry", 1, 2, 1)
		if got := w.attempts("retry")[1]; got.Outcome != record.Dead || got.Attempt != 0 || got.Status != 0 || got.Next != record.NextNone {
			t.Errorf("the attempt record of a death without a request: %s", got.Marshal())
		}
		if n := len(w.parked("paused")); n != 0 {
			t.Errorf("%d parked", n)
		}
		if s := w.state("parked"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		if got := a.metric("dlq_records_total", string(record.Expired)); got != 5 {
			t.Errorf("%v counted", got)
		}
	})
}

// A long wait does not hop on once the event has expired.
func TestExpiryOfAHop(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(http.StatusServiceUnavailable), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(time.Minute)} })
		a := w.start("a")
		a.owns(0)
		w.sendUntil("w", 0, record.At(time.Now().Add(3*time.Second)).String())
		w.until("it has expired", func() bool { return len(w.dead()) == 1 })
		if waited := time.Since(w.attempts("w")[0].StartedAt.Time); waited > 20*time.Second {
			t.Errorf("it died after %s, at the end of its wait and not of its tier", waited)
		}
		w.counts("w", 1, 2, 1)
	})
}
