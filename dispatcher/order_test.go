package dispatcher

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

func inOrder(o record.Ordering) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.Ordering = o }
}

func atOnce(n int) func(*record.Endpoint) {
	return func(e *record.Endpoint) { e.MaxInFlight = n }
}

// keyed is event i of a webhook with an ordering key.
func (w *world) keyed(webhook string, i int, key string) *kgo.Record {
	r := w.event(webhook, i)
	if key != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "ce_partitionkey", Value: []byte(key)})
	}
	return r
}

// most is how many requests of a webhook ran at the same time.
func (w *world) most(webhook string) (most int) {
	all := w.receiver.Of(webhook)
	for _, r := range all {
		running := 0
		for _, other := range all {
			if !other.Start.After(r.Start) && (other.End.IsZero() || other.End.After(r.Start)) {
				running++
			}
		}
		most = max(most, running)
	}
	return most
}

// starts tells the order in which requests of a webhook arrived, as "event/attempt".
func (w *world) starts(webhook string) (all []string) {
	for _, r := range w.receiver.Of(webhook) {
		all = append(all, fmt.Sprintf("%s/%d", r.EventID, r.Attempt))
	}
	return all
}

func TestOrderNone(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Second, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(5))
		w.send("w", 0, 20)
		w.start("a")
		began := time.Now()
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 20 })
		if most := w.most("w"); most != 5 {
			t.Errorf("%d requests at once, want 5", most)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Each key by itself is in order, one request at a time; a slow key keeps no other; what has no key shares a lane; a
// failed event steps aside.
func TestOrderKey(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderKey))
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			switch {
			case q.EventID == eventID("w", 0):
				return kafkatest.Response{Status: 200, Delay: 20 * time.Second}
			case q.EventID == eventID("w", 2) && q.Attempt == 1:
				return kafkatest.Response{Status: 500, Delay: time.Second}
			}
			return kafkatest.Response{Status: 200, Delay: time.Second}
		})
		keys := []string{"slow", "slow", "b", "b", "c", "", "", "c"}
		for i, key := range keys {
			w.produce(w.keyed("w", i, key))
		}
		w.start("a")
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == len(keys) })
		order := func(events ...int) []string {
			var ids, got []string
			for _, i := range events {
				ids = append(ids, eventID("w", i))
			}
			for _, r := range w.receiver.Of("w") {
				if r.Attempt == 1 && slices.Contains(ids, r.EventID) {
					got = append(got, r.EventID)
				}
			}
			return got
		}
		for _, lane := range [][]int{{0, 1}, {2, 3}, {4, 7}, {5, 6}} {
			mustEqual(t, "first attempts of a key", order(lane...), []string{eventID("w", lane[0]), eventID("w", lane[1])})
		}
		first := map[string]kafkatest.Request{}
		for _, r := range w.receiver.Of("w") {
			if first[r.EventID].EventID == "" {
				first[r.EventID] = r
			}
		}
		if first[eventID("w", 1)].Start.Before(first[eventID("w", 0)].End) {
			t.Error("two of one key went out at the same time")
		}
		if !first[eventID("w", 7)].Start.Before(first[eventID("w", 0)].End) {
			t.Error("a slow key kept another one")
		}
	})
}

// Nothing overtakes the failed one, until it is delivered, or its death is on record.
func TestOrderStrict(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict), neverPauses, func(e *record.Endpoint) { e.MaxAttempts = 3 })
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			switch {
			case q.EventID == eventID("w", 1) && q.Attempt < 3, q.EventID == eventID("w", 3):
				return kafkatest.Response{Status: 500}
			}
			return kafkatest.Response{Status: 200}
		})
		w.send("w", 0, 5)
		a := w.start("a")
		w.until("all have ended", func() bool { return len(w.delivered("w")) == 4 && len(w.dead()) == 1 })
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-1/1", "w-1/2", "w-1/3", "w-2/1", "w-3/1", "w-3/2", "w-3/3", "w-4/1"})
		a.quiesce()
		w.oneChain("w")
		if s := w.state("w"); s.HeadCount() != 0 {
			t.Errorf("a head is left: %s", s.Marshal())
		}
	})
}

// One key that fails keeps itself back, and nobody else.
func TestOrderStrictKey(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrictKey), neverPauses)
		w.receiver.Answer("w", func(q *kafkatest.Request) kafkatest.Response {
			if q.EventID == eventID("w", 0) && q.Attempt < 4 || q.EventID == eventID("w", 4) && q.Attempt < 2 {
				return kafkatest.Response{Status: 500}
			}
			return kafkatest.Response{Status: 200}
		})
		for i, key := range []string{"a", "b", "a", "b", "", ""} {
			w.produce(w.keyed("w", i, key))
		}
		p := w.start("a")
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 6 })
		all := w.starts("w")
		at := func(what string) int { return slices.Index(all, what) }
		if at("w-3/1") > at("w-0/2") || at("w-2/1") < at("w-0/4") || at("w-5/1") < at("w-4/2") || at("w-5/1") > at("w-0/3") {
			t.Errorf("the order was %v", all)
		}
		p.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("the state is left: %s", s.Marshal())
		}
	})
}

// eventFails: the first attempts of one event fail, each after a while; all else succeeds at once.
func eventFails(event string, attempts int, after time.Duration) kafkatest.Script {
	return func(q *kafkatest.Request) kafkatest.Response {
		if q.EventID == event && q.Attempt <= attempts {
			return kafkatest.Response{Status: 500, Delay: after}
		}
		return kafkatest.Response{Status: 200}
	}
}

const always = math.MaxInt

// The failed one was in flight when its webhook was paused, and is parked behind its followers: it goes out first all the same.
func TestStrictHeadParkedBehind(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderStrict))
		w.receiver.Answer("w", eventFails(eventID("w", 0), 1, 10*time.Second))
		w.send("w", 0, 5)
		a := w.start("a")
		w.until("the first is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
		w.do("w", record.ActionPause)
		w.until("all are parked", func() bool { return len(w.parked("w")) == 5 })
		a.stop()
		if err := a.wait(); err != nil {
			t.Fatal(err)
		}
		b := w.start("b")
		b.owns(0)
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 5 })
		mustEqual(t, "requests", w.starts("w"), []string{"w-0/1", "w-0/2", "w-1/1", "w-2/1", "w-3/1", "w-4/1"})
		b.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("the state is left: %s", s.Marshal())
		}
	})
}

// Ten are ten with eight in flight.
func TestTenAreTen(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Second, kafkatest.Always(500)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8))
		w.send("w", 0, 50)
		w.start("a")
		w.until("it is paused", func() bool { return w.pausedBy("w", record.PauseFailures) })
		time.Sleep(time.Minute)
		if sent := len(w.receiver.Of("w")); sent != 10 {
			t.Errorf("%d requests were sent, want 10", sent)
		}
		if s := w.state("w"); s.ConsecutiveFailures != 10 {
			t.Errorf("the streak is %d", s.ConsecutiveFailures)
		}
	})
}

// From a streak of five on, one request at a time.
func TestHalfOpen(t *testing.T) {
	inWorld(t, 1, kafkatest.After(time.Second, kafkatest.Always(500)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8), neverPauses)
		w.send("w", 0, 100)
		w.start("a")
		w.until("it has failed often", func() bool { return len(w.receiver.Of("w")) >= 40 })
		all := w.receiver.Of("w")
		for i := 14; i < 40; i++ { // eight may have been on their way
			if all[i].Start.Before(all[i-1].End) {
				t.Fatalf("request %d began before the one before had ended", i)
			}
		}
	})
}

// After a resume: one at a time, then more.
func TestResumeWidens(t *testing.T) {
	inWorld(t, 1, kafkatest.After(500*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8))
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 60)
		w.until("all are parked", func() bool { return len(w.parked("w")) == 60 })
		w.do("w", record.ActionResume)
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 60 })
		all := w.receiver.Of("w")
		if all[1].Start.Before(all[0].End) || w.most("w") != 8 {
			t.Errorf("the second began %s before the first had ended; at most %d ran at once", all[0].End.Sub(all[1].Start), w.most("w"))
		}
		if all[3].Start.Before(all[1].End) {
			t.Errorf("the fourth began %s before the second had ended", all[1].End.Sub(all[3].Start))
		}
	})
}

// Whatever is done to a strict webhook, nothing overtakes: requests arrive in the order of the events, but for repeats.
func TestOrdersUnderChange(t *testing.T) {
	kafkatest.Seeds(t, 2, func(t *testing.T, seed uint64) {
		inWorld(t, 1, kafkatest.After(30*time.Millisecond, kafkatest.FailSome(0.06, 2)), func(t *testing.T, w *world) { ordersUnderChange(t, w, seed) })
	})
}

func ordersUnderChange(t *testing.T, w *world, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	orders := []record.Ordering{record.OrderFirstAttempt, record.OrderStrict, record.OrderKey, record.OrderStrictKey, record.OrderNone}
	for _, o := range orders {
		w.webhook(string(o), inOrder(o), func(e *record.Endpoint) {
			e.MaxAttempts = 2 + rnd.IntN(3)
			if rnd.IntN(2) == 0 {
				neverPauses(e)
			}
		})
	}
	keyOf := func(i int) string { return []string{"", "a", "b", "c"}[i%4] }
	p, sent := w.start("p0"), 0
	for step := range 40 {
		p.owns(0)
		n := 1 + rnd.IntN(12)
		if step == 20 && seed%4 == 2 { // more than a lane takes
			n = laneLimit + 50
		}
		for _, o := range orders {
			var all []*kgo.Record
			for i := sent; i < sent+n; i++ {
				all = append(all, w.keyed(string(o), i, keyOf(i)))
			}
			w.produce(all...)
		}
		sent += n
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		id := string(orders[rnd.IntN(len(orders))])
		switch rnd.IntN(6) {
		case 0:
			w.do(id, record.ActionPause)
		case 1, 2:
			w.do(id, record.ActionResume)
		case 3:
			action := []record.Action{record.ActionHold, record.ActionRelease}[rnd.IntN(2)]
			w.do(id, action, func(c *record.Command) { c.Scope, c.Value = record.HoldWebhook, id })
		case 4:
			p.stop()
			if err := p.wait(); err != nil {
				t.Fatal(err)
			}
			p = w.start(fmt.Sprintf("p%d", step+1))
		}
	}
	p.owns(0)
	for _, o := range orders {
		w.do(string(o), record.ActionRelease, func(c *record.Command) { c.Scope, c.Value = record.HoldWebhook, string(o) })
	}
	ended := func() (n int) {
		for _, o := range orders {
			n += len(w.delivered(string(o)))
		}
		return n + len(w.dead())
	}
	for range 60 {
		for _, o := range orders {
			w.do(string(o), record.ActionResume)
		}
		if ended() == len(orders)*sent {
			break
		}
		time.Sleep(2 * time.Minute)
	}
	if got := ended(); got != len(orders)*sent {
		for _, o := range orders {
			s := w.state(string(o))
			t.Logf("%s: %s", o, s.Marshal())
		}
		t.Fatalf("%d events have ended, want %d", got, len(orders)*sent)
	}
	p.quiesce()
	for _, o := range orders {
		w.oneChain(string(o))
		newest := map[string]int{} // by lane: the highest event that has started
		for _, r := range w.receiver.Of(string(o)) {
			i, lane := 0, ""
			if _, err := fmt.Sscanf(r.EventID[len(o):], "-%d", &i); err != nil {
				t.Fatal(err)
			}
			switch o {
			case record.OrderNone:
				continue
			case record.OrderKey, record.OrderStrictKey:
				lane = keyOf(i)
			case record.OrderFirstAttempt, record.OrderStrict:
			}
			if r.Attempt > 1 && !strictly(o) {
				continue
			}
			if r.Nth == 1 || strictly(o) {
				if i < newest[lane] {
					t.Errorf("%s: attempt %d of event %d started after event %d of its lane %q", o, r.Attempt, i, newest[lane], lane)
				}
				newest[lane] = max(newest[lane], i)
			}
		}
	}
}

// A resume ends a half-open state: what waits is sent, several at once again.
func TestResumeHalfOpen(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", inOrder(record.OrderNone), atOnce(8), neverPauses)
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(500)))
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 50)
		time.Sleep(65 * time.Second)
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		w.do("w", record.ActionResume)
		resumed := time.Now()
		w.until("all are delivered", func() bool { return len(w.delivered("w")) == 50 })
		if took := time.Since(resumed); took > 200*time.Second {
			t.Errorf("50 requests of 10s took %s: one by one", took)
		}
	})
}
