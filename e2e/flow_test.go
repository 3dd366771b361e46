package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestFlow(t *testing.T) {
	w := newWorld(t, kafkatest.Start(t), 12, kafkatest.FailSome(0.3, 1))
	for i := range 50 {
		w.webhook(fmt.Sprintf("w%d", i))
	}
	w.dispatch("a")
	w.dispatch("b")
	began := time.Now()
	for i := range 50 {
		w.send(fmt.Sprintf("w%d", i), 0, 100)
	}
	t.Log("sent", time.Since(began))
	delivered := map[string]int{}
	n := 0
	err := w.receiver.Await(t.Context(), func(r kafkatest.Request) bool {
		if r.Status == 200 {
			delivered[r.EventID]++
			n++
		}
		return len(delivered) == 5000
	})
	t.Log(err, time.Since(began), n, len(w.receiver.Requests()))
}
