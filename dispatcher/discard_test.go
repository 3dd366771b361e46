package dispatcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// discard discards what a webhook has parked from before a time.
func (w *world) discard(webhook string, before time.Time) record.Result {
	w.t.Helper()
	return w.do(webhook, record.ActionDiscardParked, func(c *record.Command) { c.Before = record.At(before) })
}

// discarded are the ids of those that died so, in order.
func (w *world) discarded() (all []string) {
	w.t.Helper()
	for _, l := range w.dead() {
		if l.Reason != record.Discarded {
			w.t.Errorf("%s died as %s", l.ID, l.Reason)
		}
		all = append(all, l.ID)
	}
	return all
}

// Those produced before the time die, in order; the rest stays, and goes out in order.
func TestDiscardParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x")
		a := w.start("a")
		a.owns(0)
		if r := w.discard("w", time.Now()); r.Result != record.ResultDone || r.Detail != "discarded: 0, none is parked" {
			t.Errorf("with nothing parked: %+v", r)
		}
		w.do("w", record.ActionPause)
		w.do("x", record.ActionPause)
		w.send("w", 0, 30)
		w.send("x", 0, 30)
		time.Sleep(time.Second)
		limit := time.Now()
		time.Sleep(time.Second)
		w.send("w", 30, 20)
		if r := w.discard("w", limit.Add(-time.Hour)); r.Result != record.ResultDone || r.Detail != "discarded: 0, still parked: 50" {
			t.Errorf("of none: %+v", r)
		}
		if r := w.discard("w", limit); r.Result != record.ResultDone || r.Detail != "discarded: 30, still parked: 20" {
			t.Errorf("of the old ones: %+v", r)
		}
		mustEqual(t, "discarded", w.discarded(), eventIDs("w", 0, 30))
		if l := w.dead()[0]; l.Message != "discarded by test" {
			t.Errorf("message %q", l.Message)
		}
		if s := w.state("w"); s.Parked == nil || s.Parked.Count != 20 || len(s.Parked.Done) > 0 || s.Status != record.Paused {
			t.Errorf("state %s", s.Marshal())
		}
		w.do("w", record.ActionResume)
		w.do("x", record.ActionResume)
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == 20 && len(w.delivered("x")) == 30 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 30, 20))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// What was parked when the command came counts, also what is not committed yet.
func TestDiscardWhatIsNotCommittedYet(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a", func(o *Options) { o.Config.Cycle = 2 * time.Second })
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 5)
		w.until("they are to be parked", func() bool {
			unacked := 0
			a.look(0, func(n *number) { unacked = n.webhooks["w"].parked.unacked })
			return unacked == 5
		})
		if r := w.discard("w", time.Now()); r.Result != record.ResultDone || r.Detail != "discarded: 5, still parked: 0" {
			t.Errorf("discard: %+v", r)
		}
		mustEqual(t, "discarded", w.discarded(), eventIDs("w", 0, 5))
		a.quiesce()
		w.do("w", record.ActionResume)
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
	})
}

// Old and new ones alternate: the state says which are left, and after a restart
// those and only those go out.
func TestDiscardAmongOthers(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		limit := time.Now()
		var old, young []string
		for i := range 40 {
			r := w.event("w", i)
			r.Timestamp = limit.Add(time.Duration(i%3-1) * time.Second)
			w.produce(r)
			if i%3 == 0 {
				old = append(old, eventID("w", i))
			} else {
				young = append(young, eventID("w", i))
			}
		}
		w.until("they are parked", func() bool { return len(w.parked("w")) == 40 })
		if r := w.discard("w", limit); r.Result != record.ResultDone || r.Detail != "discarded: 14, still parked: 26" {
			t.Errorf("discard: %+v", r)
		}
		mustEqual(t, "discarded", w.discarded(), old)
		a.kill()
		b := w.start("b")
		b.owns(0)
		w.do("w", record.ActionResume)
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == len(young) })
		time.Sleep(time.Minute)
		mustEqual(t, "sent", ids(w.receiver.Of("w")), young)
		b.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		a.host.Heal()
	})
}

// The owner dies in the middle of a discard, several times: nothing dies twice,
// nothing is lost, and the command has one result.
func TestDiscardThroughCrashes(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		p := w.start("a")
		p.owns(0)
		w.do("w", record.ActionPause)
		const old, young = 60, 10
		big := func(i int) *kgo.Record { // a few fill one fetch: the discard takes many transactions
			r := w.event("w", i)
			r.Value = fmt.Appendf(nil, `{"n":%d,"fill":%q}`, i, strings.Repeat("x", 300_000))
			return r
		}
		for i := range old {
			w.produce(big(i))
		}
		time.Sleep(time.Second)
		limit := time.Now()
		time.Sleep(time.Second)
		for i := range young {
			w.produce(big(old + i))
		}
		w.until("they are parked", func() bool { return len(w.parked("w")) == old+young })
		w.produceCommand(record.Command{ID: "discard", Webhook: "w", Action: record.ActionDiscardParked, Before: record.At(limit), By: "test"})
		w.produceCommand(record.Command{ID: "resume", Webhook: "w", Action: record.ActionResume})
		var dead []*process
		for i := range 3 {
			more := len(w.discarded()) + 5
			w.until("some have died", func() bool { return len(w.discarded()) >= more })
			if i == 1 { // the outcome of what is under way is not known, and is not committed
				w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: 2})
				time.Sleep(200 * time.Millisecond)
			}
			p.kill()
			dead = append(dead, p)
			if n := len(w.results()); n != 1 {
				t.Fatalf("%d results in the middle, want that of the pause", n)
			}
			p = w.start(fmt.Sprint("next-", i))
			p.owns(0)
		}
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == young })
		time.Sleep(time.Minute)
		mustEqual(t, "discarded", w.discarded(), eventIDs("w", 0, old))
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", old, young))
		if got := w.results(); !slices.Equal(got[1:], []string{"discard done", "resume done"}) {
			t.Errorf("results %v", got)
		}
		p.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		for _, d := range dead {
			d.host.Heal()
		}
	})
}

// drainsSlowly makes a webhook with 200 old and 50 young events parked, resumes it, and returns
// when event 40 is in flight, for 20 s, and the time between old and young.
func (w *world) drainsSlowly() (limit time.Time) {
	w.t.Helper()
	w.do("w", record.ActionPause)
	w.send("w", 0, 200)
	w.until("they are parked", func() bool { return len(w.parked("w")) == 200 })
	limit = time.Now().Add(time.Second)
	time.Sleep(2 * time.Second)
	w.send("w", 200, 50)
	w.until("they are parked", func() bool { return len(w.parked("w")) == 250 })
	w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
		if q.EventID == "w-40" && q.Nth == 1 {
			return kafkatest.Response{Status: 200, Delay: 20 * time.Second}
		}
		return kafkatest.Response{Status: 200}
	})
	w.do("w", record.ActionResume)
	w.until("one is slow", func() bool { return len(w.receiver.Of("w")) == 41 })
	return limit
}

// drained checks how the events of drainsSlowly ended.
func (w *world) drained(discarded, delivered []string) {
	w.t.Helper()
	w.until("the rest is delivered", func() bool { return len(w.delivered("w")) >= len(delivered) })
	time.Sleep(time.Minute)
	got := w.discarded()
	slices.Sort(got)
	slices.Sort(discarded)
	mustEqual(w.t, "discarded", got, discarded)
	mustEqual(w.t, "delivered", w.delivered("w"), delivered)
	if s := w.state("w"); !s.Healthy() {
		w.t.Errorf("state %s", s.Marshal())
	}
	w.oneChain("w")
}

// A webhook that is draining: what was read back dies too, what is in flight ends.
func TestDiscardWhileDraining(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.start("a").owns(0)
		limit := w.drainsSlowly()
		if r := w.discard("w", limit); r.Result != record.ResultDone || r.Detail != "discarded: 159, still parked: 51" {
			t.Errorf("discard: %+v", r)
		}
		w.drained(eventIDs("w", 41, 159), append(eventIDs("w", 0, 41), eventIDs("w", 200, 50)...))
	})
}

// What is in flight is cut, and lies in parked again, when the discard has gone by:
//
//  1. event 40 is in flight; those behind it die;
//  2. the webhook is held, and the request cut;
//  3. the discard reads on, behind event 40.
//
// It comes back to it.
func TestDiscardOfWhatComesBack(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a", func(o *Options) { o.Config.Cycle = 3 * time.Second })
		a.owns(0)
		limit := w.drainsSlowly()
		w.send("w", 250, 1) // what is parked and not committed keeps the discard going
		w.until("another is to be parked", func() bool {
			unacked := 0
			a.look(0, func(n *number) { unacked = n.webhooks["w"].parked.unacked })
			return unacked == 1
		})
		w.produceCommand(record.Command{ID: "discard", Webhook: "w", Action: record.ActionDiscardParked, Before: record.At(limit)})
		w.until("those behind it have died", func() bool {
			died := 0
			a.look(0, func(n *number) {
				if d := n.webhooks["w"].discard; d != nil {
					died = d.died
				}
			})
			return died == 159
		})
		w.produceCommand(record.Command{ID: "hold", Webhook: "w", Action: record.ActionHold, Scope: record.HoldWebhook, Value: "w"})
		w.until("it is held", func() bool {
			held := false
			a.look(0, func(n *number) { held = n.webhooks["w"].stopped() })
			return held
		})
		a.look(0, func(n *number) {
			if len(n.webhooks["w"].flight) != 1 || n.webhooks["w"].discard == nil {
				t.Error("the request or the discard has ended already")
			}
			n.cut("for the test")
		})
		w.until("the discard is done", func() bool { return slices.Contains(w.results(), "discard done") })
		w.release(record.HoldWebhook, "w")
		w.drained(eventIDs("w", 40, 160), append(eventIDs("w", 0, 40), eventIDs("w", 200, 51)...))
	})
}

// The webhook is deleted in the middle: the rest dies as that.
func TestDiscardOfADeletedWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a", func(o *Options) { o.Config.Cycle = time.Second })
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 50)
		w.until("they are to be parked", func() bool {
			unacked := 0
			a.look(0, func(n *number) { unacked = n.webhooks["w"].parked.unacked })
			return unacked == 50
		})
		w.produceCommand(record.Command{ID: "discard", Webhook: "w", Action: record.ActionDiscardParked, Before: record.At(time.Now())})
		w.until("it has begun", func() bool {
			begun := false
			a.look(0, func(n *number) { begun = n.webhooks["w"].discard != nil })
			return begun
		})
		w.delete("w")
		w.until("all are dead", func() bool { return len(w.dead()) == 50 })
		w.until("the command is answered", func() bool { r := w.results(); return r[len(r)-1] == "discard refused" })
		for _, l := range w.dead() {
			if l.Reason != record.WebhookDeleted {
				t.Errorf("%s died as %s", l.ID, l.Reason)
			}
		}
		w.until("nothing is left of it", func() bool { s := w.state("w"); return s.Healthy() })
	})
}

// What can't be listed in the state is left, and the person told what to do.
func TestDiscardOfTooManyAmongOthers(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		limit := time.Now()
		records := []*kgo.Record{w.event("w", 0)} // the young one, in front
		for i := range maxDone + 100 {
			r := w.event("w", i+1)
			r.Timestamp = limit.Add(-time.Hour)
			records = append(records, r)
		}
		records[0].Timestamp = limit.Add(time.Minute)
		w.produce(records...)
		w.until("they are parked", func() bool {
			s := w.state("w")
			return s.Parked != nil && s.Parked.Count == int64(len(records))
		})
		if r := w.discard("w", limit); r.Result != record.ResultFailed || !strings.HasPrefix(r.Detail, "discarded: 10000; the rest lies scattered") {
			t.Errorf("discard: %+v", r)
		}
		if s := w.state("w"); len(s.Parked.Done) != maxDone || s.Parked.Count != 101 {
			t.Errorf("%d done, %d parked", len(s.Parked.Done), s.Parked.Count)
		}
		w.do("w", record.ActionResume)
		w.until("the rest is delivered", func() bool { return len(w.delivered("w")) == 101 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), append(eventIDs("w", 0, 1), eventIDs("w", maxDone+1, 100)...))
		a.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("%d parked", s.Parked.Count)
		}
	})
}
