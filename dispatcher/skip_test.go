package dispatcher

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// skip has a record of number 0 skipped.
func (w *world) skip(topic string, offset int64) record.Result {
	w.t.Helper()
	return w.forNumbers(record.Command{Action: record.ActionSkip, Value: fmt.Sprintf("%s/0/%d", topic, offset), Reason: "poison"}, 0)
}

// diedBySkip checks that exactly these died by hand.
func (w *world) diedBySkip(want ...string) {
	w.t.Helper()
	var got []string
	for _, l := range w.dead() {
		if l.Reason != record.Discarded || !strings.Contains(l.Message, "skipped by test: poison") {
			w.t.Errorf("%s died as %s: %s", l.ID, l.Reason, l.Message)
		}
		got = append(got, l.ID)
	}
	mustEqual(w.t, "skipped", got, want)
}

// What waits in memory dies at once: in a lane, in the due queue (named by the retry
// record or by its event), read back from parked.
func TestSkipWhatWaits(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.receiver.Answer("w", kafkatest.After(10*time.Second, kafkatest.Always(200)))
		w.send("w", 0, 3) // 0 is in flight, at offsets 0, 1, 2
		w.until("one is in flight", func() bool { return len(w.receiver.Of("w")) == 1 })
		if r := w.skip(w.topo.Events(), 1); r.Result != record.ResultDone || r.Detail != "w-1 of webhook w died as discarded" {
			t.Errorf("skip: %+v", r)
		}
		if r := w.skip(w.topo.Events(), 1); r.Result != record.ResultRefused || !strings.Contains(r.Detail, "is done") {
			t.Errorf("skipped again: %+v", r)
		}
		w.until("the others are delivered", func() bool { return len(w.delivered("w")) == 2 })

		w.receiver.Answer("w", kafkatest.Always(500))
		w.send("w", 3, 2)
		w.until("both failed twice", func() bool { return len(w.retries("w")) == 4 })
		var source record.Source
		for _, d := range w.retries("w") {
			if d.ID == eventID("w", 3) {
				source = d.Source
			}
		}
		w.until("both wait", func() bool {
			waiting := 0
			a.look(0, func(n *number) { waiting = n.due.Len() })
			return waiting >= 2
		})
		if r := w.skip(source.Topic, source.Offset); r.Result != record.ResultDone {
			t.Errorf("skip of an event that waits in a delay topic: %+v", r)
		}
		for _, r := range w.committed(w.topo.Retries()[1]) {
			if d, err := record.FromWaiting(r); err == nil && d.ID == eventID("w", 4) {
				if said := w.skip(r.Topic, r.Offset); said.Result != record.ResultDone {
					t.Errorf("skip of a retry record: %+v", said)
				}
			}
		}
		time.Sleep(time.Minute)
		a.quiesce()
		w.diedBySkip("w-1", "w-3", "w-4")
		w.counts("w", 6, 9, 4)
		a.look(0, func(n *number) {
			if n.flow.retries != (amount{}) || n.flow.lanes != (amount{}) || n.due.Len() != 0 {
				t.Errorf("still counted: %+v, %+v, %d due", n.flow.retries, n.flow.lanes, n.due.Len())
			}
		})
	})
}

// What is in flight dies when its request fails, with all that the request tells; if it is delivered,
// the command is refused. Other commands don't wait for it.
func TestSkipInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		answer kafkatest.Script
		result record.ResultCode
		says   string
	}{
		"fails":     {kafkatest.Always(500), record.ResultDone, "is dead"},
		"hangs":     {func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} }, record.ResultDone, "is dead"},
		"is cut":    {func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} }, record.ResultDone, "is dead"},
		"delivered": {kafkatest.Always(200), record.ResultRefused, "is delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.start("a")
				a.owns(0)
				w.receiver.Answer("w", kafkatest.After(10*time.Second, c.answer))
				w.send("w", 0, 1)
				w.until("it is in flight", func() bool { return len(w.receiver.Of("w")) == 1 })
				go func() {
					time.Sleep(time.Second)
					w.hold(record.HoldAll, "")
					if name == "is cut" {
						a.look(0, func(n *number) { n.cut("for the test") })
					}
				}()
				r := w.skip(w.topo.Events(), 0)
				if r.Result != c.result || !strings.Contains(r.Detail, c.says) {
					t.Errorf("skip: %+v", r)
				}
				if got := w.results(); got[0][strings.IndexByte(got[0], ' '):] != " done" || len(got) != 2 {
					t.Errorf("results %v, want that of the hold first", got)
				}
				a.quiesce()
				s := w.state("w")
				if c.result == record.ResultRefused {
					w.counts("w", 1, 1, 0)
					mustEqual(t, "delivered", w.delivered("w"), eventIDs("w", 0, 1))
					return
				}
				w.diedBySkip("w-0")
				w.counts("w", 1, 1, 0)
				if name == "is cut" {
					return
				}
				if at := w.attempts("w")[0]; at.Attempt != 1 || at.Outcome != record.Dead || at.Next != record.NextNone || s.ConsecutiveFailures != 1 {
					t.Errorf("attempt %s, streak %d", at.Marshal(), s.ConsecutiveFailures)
				}
			})
		})
	}
}

// A parked record is read and dies where it lies; the others keep their order.
func TestSkipParked(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.webhook("x")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 5)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 5 })
		a.quiesce()
		place := map[string]int64{}
		for _, r := range w.committed(w.topo.Parked()) {
			d, _ := record.FromWaiting(r)
			place[d.ID] = r.Offset
		}
		for _, i := range []int{3, 0} {
			if r := w.skip(w.topo.Parked(), place[eventID("w", i)]); r.Result != record.ResultDone || r.Detail != eventID("w", i)+" of webhook w died as discarded" {
				t.Errorf("skip of parked event %d: %+v", i, r)
			}
		}
		if r := w.skip(w.topo.Parked(), place["w-3"]); r.Result != record.ResultRefused || !strings.Contains(r.Detail, "is done") {
			t.Errorf("skipped again: %+v", r)
		}
		if r := w.skip(w.topo.Parked(), place["w-4"]+1); r.Result != record.ResultRefused { // a marker, or the end
			t.Errorf("skip of nothing: %+v", r)
		}
		a.quiesce()
		if s := w.state("w"); s.Parked == nil || s.Parked.Count != 3 {
			t.Errorf("state %s", s.Marshal())
		}
		a.kill()
		b := w.start("b")
		b.owns(0)
		w.do("w", record.ActionResume)
		w.until("the others are delivered", func() bool { return len(w.delivered("w")) == 3 })
		time.Sleep(time.Minute)
		mustEqual(t, "sent", ids(w.receiver.Of("w")), []string{"w-1", "w-2", "w-4"})
		w.diedBySkip("w-3", "w-0")
		b.quiesce()
		if s := w.state("w"); !s.Healthy() {
			t.Errorf("state %s", s.Marshal())
		}
		if r := w.skip(w.topo.Parked(), place["w-4"]); r.Result != record.ResultRefused || !strings.Contains(r.Detail, "is done") {
			t.Errorf("skip of one that is delivered: %+v", r)
		}
		a.host.Heal()
	})
}

// The owner dies before a skip is committed: the next one does it, once.
func TestSkipIsDoneOnce(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, 3)
		w.until("they are parked", func() bool { return len(w.parked("w")) == 3 })
		a.quiesce()
		w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1, When: commitsOf("a")})
		b := w.start("b")
		at := int64(-1)
		for _, r := range w.committed(w.topo.Parked()) {
			if d, _ := record.FromWaiting(r); d.ID == "w-1" {
				at = r.Offset
			}
		}
		go func() {
			w.until("a has done it", func() bool {
				left := int64(3)
				if n := a.number(0); n != nil {
					a.look(0, func(n *number) { left = n.webhooks["w"].parkedCount() })
				}
				return left == 2
			})
			a.kill()
		}()
		if r := w.skip(w.topo.Parked(), at); r.Result != record.ResultDone {
			t.Errorf("skip: %+v", r)
		}
		b.owns(0)
		w.diedBySkip("w-1")
		a.host.Heal()
		w.do("w", record.ActionResume)
		w.until("the others are delivered", func() bool { return len(w.delivered("w")) == 2 })
		w.diedBySkip("w-1")
		w.oneChain("w")
	})
}
