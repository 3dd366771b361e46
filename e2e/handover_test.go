package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// Dispatchers that join and leave cleanly cost no extra request, and no order.
func TestJoinAndLeave(t *testing.T) {
	suite(t, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 1)), func(w *world) {
		const webhooks = 20
		for i := range webhooks {
			w.webhook(fmt.Sprintf("w%d", i), neverPause)
		}
		w.dispatch("a")
		steps := []func(){
			func() { w.dispatch("b") }, func() { w.dispatch("c") }, func() { w.stop("a") },
			func() { w.dispatch("a") }, func() { w.stop("c") }, func() { w.stop("b") },
		}
		for i, step := range steps {
			for j := range webhooks {
				w.send(fmt.Sprintf("w%d", j), i*5, 5)
			}
			step()
		}
		w.finish()
	})
}

// Dispatchers that are cut off from Kafka for a while fall silent in time, come
// back, and double nothing: twelve seeds of a minute of trouble.
func TestCutOffAndBack(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 2)), func(w *world) { w.trouble(seed) })
		})
	}
}

func (w *world) trouble(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	const webhooks = 20
	for i := range webhooks {
		w.webhook(fmt.Sprintf("w%d", i), neverPause)
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		w.dispatchFrom(name)
	}
	cut := map[string]time.Time{} // until when
	for second := range 60 {
		for i := range webhooks {
			w.send(fmt.Sprintf("w%d", i), second*2, 2)
		}
		time.Sleep(time.Second)
		name := names[random.IntN(len(names))]
		if time.Now().Before(cut[name]) {
			continue
		}
		switch random.IntN(8) {
		case 0:
			w.stop(name)
			time.Sleep(time.Duration(random.IntN(12_000)) * time.Millisecond)
			w.dispatchFrom(name)
		case 1:
			cut[name] = w.cutOff(name, time.Duration(random.IntN(40_000))*time.Millisecond)
		}
	}
	time.Sleep(time.Minute)
	w.finish()
}
