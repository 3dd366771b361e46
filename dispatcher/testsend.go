package dispatcher

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/record"
)

// testType is the event type of a test, which no upstream sends.
const testType = "reenvio.test"

// A test sends one event made here, so that a person sees whether the endpoint
// answers: also while the webhook is paused, which is when it is asked. It is no
// attempt: it has no streak and no record, and goes beside what is in flight.

// test puts it into the line of those that start when they may.
func (n *number) test(o order) answer {
	if _, why := n.testable(o); why != "" {
		return refused("%s", why)
	}
	n.tests = append(n.tests, o)
	n.inbox.wake()
	return later
}

// testable is the endpoint to send to, or why nothing may be sent there.
func (n *number) testable(o order) (e *endpoint, why string) {
	e, known := n.endpoints.get(o.Webhook)
	if !known || e.deleted() {
		return nil, fmt.Sprintf("there is no webhook %q", o.Webhook)
	}
	w := n.webhook(o.Webhook)
	defer n.forget(w)
	n.prepare(n.d.now(), w, e)
	switch h := w.held(); {
	case e.err != nil:
		return nil, "its configuration can't be used: " + e.err.Error()
	case h != nil:
		return nil, "it is held" + since(h) + ": release it first"
	case n.heldAll() != nil:
		return nil, "everything is held" + since(n.heldAll()) + ": release it first"
	}
	return e, ""
}

// startTests starts the tests that wait, as far as there are slots, and places at their hosts.
func (n *number) startTests(now time.Time) {
	waiting := n.tests
	n.tests = nil
	for i, o := range waiting {
		e, why := n.testable(o)
		if why != "" { // it has changed since
			n.end(now, o, refused("%s", why))
			continue
		}
		if n.whyBlocked(now) != "" {
			n.tests = append(n.tests, waiting[i:]...)
			return
		}
		if !n.d.slots.take(n, suspect) {
			n.tests = append(n.tests, waiting[i:]...)
			return
		}
		host := n.hostOf(o.Webhook)
		if !n.d.hosts.take(n, o.Webhook, host) {
			n.d.slots.give(n, suspect)
			n.tests = append(n.tests, o)
			continue
		}
		n.sendTest(now, o, e, host)
	}
}

func (n *number) sendTest(now time.Time, o order, e *endpoint, host string) {
	n.inFlight.Add(1)
	attempt := delivery.Attempt{Delivery: testDelivery(now, o), Number: 1, Endpoint: e.ready}
	ctx := n.requestContext()
	n.running.Go(func() {
		result := n.d.sender.Send(ctx, attempt)
		n.d.slots.give(n, suspect)
		n.d.hosts.give(host)
		n.inbox.post(func() {
			n.inFlight.Add(-1)
			if result.Class == delivery.ClassCancelled {
				// By the end of this life: the next owner begins it again. Or by a lease that
				// came back.
				n.tests = append(n.tests, o)
				return
			}
			n.end(n.d.now(), o, testAnswer(result))
		})
	})
}

// testDelivery is the event. Its id is the command's place, the same when the next
// owner begins the command again.
func testDelivery(now time.Time, o order) *record.Delivery {
	at := record.SourceOf(o.rec)
	value, _ := json.Marshal(map[string]any{"test": true, "webhook": o.Webhook, "command": o.ID}) // texts and a bool always encode
	return &record.Delivery{
		Event: record.Event{
			Webhook: o.Webhook, ID: fmt.Sprintf("test_%d_%d", at.Partition, at.Offset), Type: testType, CESource: "/reenvio",
			Time: record.At(now), ContentType: "application/json", Value: value,
		},
		Key: o.rec.Key, Source: at, ProducedAt: record.At(now),
	}
}

// testAnswer says what the endpoint answered, and how fast.
func testAnswer(res delivery.Result) answer {
	took := tookText(res.Duration)
	switch {
	case res.Class == delivery.ClassDelivered:
		return done("status %d after %s", res.Status, took)
	case res.Class == delivery.ClassOurs:
		return failed("not sent, for a reason of ours: %s", failureText(res))
	case res.Failure == delivery.FailureStatus:
		return failed("status %d after %s", res.Status, took)
	case res.Status > 0:
		return failed("status %d after %s: %s", res.Status, took, failureText(res))
	}
	return failed("no answer after %s: %s", took, failureText(res))
}

func tookText(d time.Duration) string {
	if d < time.Millisecond {
		return "<1 ms"
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
