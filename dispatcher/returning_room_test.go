package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// hasParked waits until a webhook has so many events parked.
func (w *world) hasParked(webhook string, n int64) {
	w.t.Helper()
	w.until("they are parked", func() bool { return w.state(webhook).Parked != nil && w.state(webhook).Parked.Count == n })
}

// resumedQuickly resumes webhook w, and checks that its events begin to go out.
func (w *world) resumedQuickly() {
	w.t.Helper()
	w.do("w", record.ActionResume)
	began := time.Now()
	w.until("w begins", func() bool { return len(w.receiver.Of("w")) > 0 || time.Since(began) > 4*time.Minute })
	if took := time.Since(began); took > 2*time.Second {
		w.t.Errorf("w has begun after %s", took)
	}
}

// A webhook with much parked is deleted while nothing can be committed: what dies of it is bounded in memory.
func TestDeathsOfParkedDoNotPileUp(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		const n, fits = 100, maxUncommittedBytes / 300_000
		for i := range n {
			w.produce(w.bigEvent("w", i))
		}
		w.hasParked("w", n)
		a.quiesce()
		stuck := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.delete("w")
		time.Sleep(3 * time.Second)
		if got := a.number(0).out.len(); got < fits || got > 2*(fits+2) { // each death is two records
			t.Errorf("%d records wait for a commit, want about %d", got, 2*fits)
		}
		stuck.Remove()
		w.until("all are dead", func() bool { return len(w.dead()) == n })
	})
}

// One of many that return takes two minutes, and the others, which may overtake it, milliseconds: what the state lists as
// done beyond it is bounded, and so is what each step costs.
func TestDoneBeyondASlowOneIsBounded(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), func(e *record.Endpoint) { e.Timeout = record.Duration(2 * time.Minute) })
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		const n = maxDone + 1000
		for i := 0; i < n; i += 1000 {
			w.send("w", i, 1000)
		}
		w.hasParked("w", n)
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 1) {
				return kafkatest.Response{Status: 200, Delay: 110 * time.Second}
			}
			return kafkatest.Response{Status: 200, Delay: time.Millisecond}
		})
		w.do("w", record.ActionResume)
		time.Sleep(time.Minute)
		a.quiesce()
		if got := len(w.state("w").Parked.Done); got < maxDone || got > maxDone+drainLane {
			t.Errorf("%d are listed as done, want about %d", got, maxDone)
		}
		w.until("all are delivered", func() bool { return len(w.receiver.Of("w")) == n })
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("%d are parked", s.Parked.Count)
		}
	})
}

// Large events of a key that waits for its head for an hour are read back; another webhook returns all the same.
func TestHeadsKeepNoParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("keys", inOrder(record.OrderStrictKey), neverPauses, func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(time.Hour)} })
		w.webhook("w")
		w.receiver.Answer("keys", eventFails(eventID("keys", 0), 1, 0))
		a := w.start("a")
		a.owns(0)
		const n = drainLane + 20
		w.do("keys", record.ActionPause)
		w.do("w", record.ActionPause)
		for i := range n {
			r := w.keyed("keys", i, "k")
			r.Value = fmt.Appendf(nil, "%q", noise(i, lanesBytes/drainLane))
			w.produce(r)
		}
		w.send("w", 0, 10)
		w.hasParked("keys", n)
		w.hasParked("w", 10)
		w.do("keys", record.ActionResume)
		w.until("its head has failed", func() bool { return len(w.receiver.Of("keys")) == 1 })
		time.Sleep(time.Minute)
		w.resumedQuickly()
		time.Sleep(70 * time.Minute)
		mustEqual(t, "sent", ids(w.receiver.Of("keys"))[1:], eventIDs("keys", 0, n))
	})
}

// Many webhooks were quick when they were resumed, and then hang, with much read back; another one returns all the same,
// and nothing of theirs is lost or overtaken.
func TestQuickOnesThatHangKeepNoParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		const hang, n = lanesRecords/2/drainLane + 3, drainLane + 10
		w.webhook("w")
		all := []string{"w"}
		a := w.start("a")
		a.owns(0)
		for i := range hang {
			all = append(all, fmt.Sprintf("dead%d", i))
			w.webhook(all[i+1], neverPauses)
			w.receiver.Answer(all[i+1], func(q *kafkatest.Request) kafkatest.Response {
				return kafkatest.Response{Status: 200, Hang: q.EventID == eventID(q.Webhook, 1) && q.Nth == 1}
			})
		}
		for _, id := range all {
			w.do(id, record.ActionPause)
			w.send(id, 0, n)
		}
		a.quiesce()
		for _, id := range all[1:] {
			w.do(id, record.ActionResume)
		}
		time.Sleep(3 * time.Second)
		w.resumedQuickly()
		for _, id := range all[1:] {
			w.until("all are delivered", func() bool { return len(w.delivered(id)) == n })
			var first []string
			for _, r := range w.receiver.Of(id) {
				if r.Attempt == 1 {
					first = append(first, r.EventID)
				}
			}
			mustEqual(t, "first attempts", first, eventIDs(id, 0, n))
		}
	})
}
