package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// hangs answers nothing until the client leaves.
func hangs(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} }

// quickly checks that an event of a healthy webhook is delivered at once, whatever the others of its number do.
func (w *world) quickly(webhook string) {
	w.t.Helper()
	began := time.Now()
	w.send(webhook, 0, 1)
	w.until("the healthy one is delivered", func() bool { return len(w.receiver.Of(webhook)) == 1 })
	if took := time.Since(began); took > shedAnyAfter {
		w.t.Errorf("the healthy one was delivered after %s", took)
	}
}

// A webhook fails quickly for a while, thousands of times; then it hangs, and all of that is due.
func TestDueRetriesKeepNobodyElse(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		const n = lanesRecords + 500
		w.webhook("dead", neverPauses)
		w.receiver.Answer("dead", kafkatest.Always(500))
		w.webhook("healthy")
		a := w.start("a")
		a.owns(0)
		for i := 0; i < n; i += 500 {
			w.send("dead", i, 500)
		}
		w.until("all have failed once", func() bool { return len(w.receiver.Of("dead")) >= n })
		w.receiver.Answer("dead", hangs)
		time.Sleep(10 * time.Second)
		a.look(0, func(nu *number) {
			if due := nu.webhooks["dead"].retries.len(); due < lanesRecords {
				t.Errorf("%d retries are due: this test shows nothing", due)
			}
		})
		w.quickly("healthy")
	})
}

// Many webhooks are resumed with much parked, and hang.
func TestReturningEventsKeepNobodyElse(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		const n = lanesRecords/drainLane + 2
		w.webhook("healthy")
		a := w.start("a")
		a.owns(0)
		for i := range n {
			id := fmt.Sprintf("dead%d", i)
			w.webhook(id, neverPauses)
			w.receiver.Answer(id, hangs)
			w.do(id, record.ActionPause)
			w.send(id, 0, drainLane+10)
		}
		a.quiesce()
		for i := range n {
			w.do(fmt.Sprintf("dead%d", i), record.ActionResume)
		}
		time.Sleep(2 * time.Second)
		w.quickly("healthy")
	})
}

// ... and another one that is resumed after them returns all the same.
func TestReturningEventsKeepNoParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		const n = lanesRecords/2/drainLane + 5
		for i := range n + 1 {
			id := fmt.Sprintf("dead%d", i)
			if i == n {
				id = "w"
			} else {
				w.receiver.Answer(id, hangs)
			}
			w.webhook(id, neverPauses)
			w.do(id, record.ActionPause)
			w.send(id, 0, drainLane+10)
		}
		a.quiesce()
		for i := range n {
			w.do(fmt.Sprintf("dead%d", i), record.ActionResume)
		}
		time.Sleep(2 * time.Second)
		w.do("w", record.ActionResume)
		began := time.Now()
		w.until("the parked ones are delivered", func() bool { return len(w.receiver.Of("w")) == drainLane+10 })
		if took := time.Since(began); took > shedAnyAfter {
			t.Errorf("the parked ones were delivered after %s", took)
		}
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, drainLane+10))
	})
}

// Two webhooks hang with long lanes, not long enough to be parked; another one's parked events return all the same.
func TestLongLanesDoNotKeepParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		w.webhook("w")
		w.do("w", record.ActionPause)
		w.send("w", 0, 5)
		for i := range 2 {
			id := fmt.Sprintf("dead%d", i)
			w.webhook(id, neverPauses)
			w.receiver.Answer(id, hangs)
			w.send(id, 0, laneLimit-100)
		}
		time.Sleep(2 * time.Second)
		w.do("w", record.ActionResume)
		began := time.Now()
		w.until("the parked ones are delivered", func() bool { return len(w.receiver.Of("w")) == 5 })
		if took := time.Since(began); took > shedAnyAfter {
			t.Errorf("the parked ones were delivered after %s", took)
		}
	})
}

// What waits for an hour keeps nobody's retry of two seconds out.
func TestLongTierKeepsNoShortOne(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		tiers := append(w.topo.Tiers(), time.Hour)
		w.topo = w.cluster.Topology(t, 1, tiers...)
		w.cluster.CreateTopics(t, w.topo)
		w.control = control.New(w.client, w.options, w.topo, w.keys)
		w.webhook("big", neverPauses, func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(time.Hour)} })
		w.webhook("other")
		a := w.start("a", func(o *Options) { o.Retry.Tiers = append(o.Retry.Tiers, "1h") })
		a.owns(0)
		const bigs = dueBytes/1_000_000 + 3 // more than fit
		for i := range bigs + 1 {
			if i == bigs { // what is fetched together is taken in together: one comes later
				w.until("the big ones have failed", func() bool { return len(w.retries("big")) == bigs })
				time.Sleep(time.Minute)
			}
			r := w.event("big", i)
			r.Value = noise(i, 1_000_000)
			w.produce(r)
		}
		w.until("so has the last", func() bool { return len(w.retries("big")) == bigs+1 })
		time.Sleep(time.Minute)
		a.look(0, func(n *number) {
			if n.streams[w.topo.Retry(time.Hour)].stopped == "" {
				t.Error("the long tier has room: this test shows nothing")
			}
		})
		if got := a.metric("intake_stopped", "its due queue is full"); got != 1 {
			t.Errorf("intake_stopped is %v, want 1", got)
		}
		w.send("other", 0, 1)
		time.Sleep(10 * time.Second)
		if sent := len(w.receiver.Of("other")); sent != 2 {
			t.Errorf("%d requests, want the second after 2 s", sent)
		}
	})
}

// Thousands of due retries that take long, of one webhook, let the delay topic move on for the others.
func TestSlowRetriesKeepNobodyElse(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("slow", neverPauses, func(e *record.Endpoint) { e.Timeout = record.Duration(time.Minute) })
		w.receiver.Answer("slow", kafkatest.After(40*time.Second, kafkatest.Always(200)))
		w.webhook("other")
		a := w.start("a")
		a.owns(0)
		offset := int64(0)
		waiting := func(webhook string, n int) {
			var all []*kgo.Record
			for range n {
				d := record.Delivery{
					Event: record.Event{Webhook: webhook, ID: fmt.Sprint(webhook, offset)}, Key: []byte(webhook), Attempts: 1,
					Source: record.Source{Topic: w.topo.Events(), Offset: offset},
				}
				offset++
				all = append(all, d.RetryRecord(w.topo.Retry(2*time.Second), 0))
			}
			w.produce(all...)
		}
		waiting("slow", 1000)
		const rounds, each = 30, 1000
		for range rounds {
			waiting("other", each)
			time.Sleep(2 * time.Second)
		}
		w.until("the retries of the other one have gone out", func() bool { return len(w.receiver.Of("other")) == rounds*each })
		a.look(0, func(n *number) {
			if n.webhooks["slow"].parkedCount() == 0 {
				t.Error("nothing of the slow one is parked: this test shows nothing")
			}
		})
	})
}
