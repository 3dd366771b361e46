package e2e_test

import (
	"fmt"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// What may overtake what, in each ordering, while some events fail twice, all is paused and resumed, and the number changes
// hands.
func TestOrders(t *testing.T) {
	suite(t, kafkatest.FailSome(0.2, 2), func(w *world) {
		orders := []record.Ordering{record.OrderFirstAttempt, record.OrderStrict, record.OrderKey, record.OrderStrictKey, record.OrderNone}
		keyOf := func(i int) string { return []string{"", "a", "b"}[i%3] }
		for _, o := range orders {
			w.webhook(string(o), neverPause, func(e *record.Endpoint) { e.Ordering = o })
		}
		w.dispatch("a")
		const rounds, each = 3, 10
		for round := range rounds {
			for _, o := range orders {
				w.sendKeyed(string(o), round*each, each, keyOf)
			}
			switch round {
			case 0:
				for _, o := range orders {
					w.command(string(o), record.ActionPause)
				}
			case 1:
				w.dispatch("b")
				w.running["a"]()
				for _, o := range orders {
					w.command(string(o), record.ActionResume)
				}
			}
		}
		w.finish()
		for _, o := range orders {
			newest := map[string]int{}
			for _, q := range w.receiver.Of(string(o)) {
				var i int
				if _, err := fmt.Sscanf(q.EventID, "evt-"+string(o)+"-%d", &i); err != nil {
					w.t.Fatal(err)
				}
				strict := o == record.OrderStrict || o == record.OrderStrictKey
				lane := ""
				if o == record.OrderKey || o == record.OrderStrictKey {
					lane = keyOf(i)
				}
				if o == record.OrderNone || q.Attempt > 1 && !strict {
					continue
				}
				if i < newest[lane] {
					w.t.Errorf("%s: attempt %d of event %d came after event %d of its lane %q", o, q.Attempt, i, newest[lane], lane)
				}
				newest[lane] = i
			}
		}
	})
}
