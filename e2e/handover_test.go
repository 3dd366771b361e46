package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
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

// Four dispatchers of which one joins or leaves every 5 s, for a minute: no extra
// request, no order lost. What leaves is drained, so there is no incident to explain one.
func TestComingsAndGoings(t *testing.T) {
	kafkatest.Seeds(t, 2, func(t *testing.T, seed uint64) {
		inBubble(t, kafkatest.After(150*time.Millisecond, kafkatest.FailSome(0.3, 2)), func(w *world) { w.comeAndGo(seed) })
	})
}

func (w *world) comeAndGo(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	orders := []record.Ordering{record.OrderFirstAttempt, record.OrderKey, record.OrderNone}
	const webhooks, each = 9, 3 // busy most of the time
	for i := range webhooks {
		w.webhook(fmt.Sprintf("w%d", i), neverPause, func(e *record.Endpoint) { e.Ordering = orders[i%len(orders)] })
	}
	names := []string{"a", "b", "c", "d"}
	w.dispatch("a")
	for second := range 60 {
		for i := range webhooks {
			w.send(fmt.Sprintf("w%d", i), second*each, each)
		}
		at := time.Duration(random.IntN(1000)) * time.Millisecond
		time.Sleep(at)
		if name := names[random.IntN(len(names))]; second%5 == 0 {
			switch {
			case w.running[name] == nil:
				w.dispatch(name)
			case len(w.running) > 1: // somebody has to deliver
				w.stop(name)
			}
		}
		time.Sleep(time.Second - at)
	}
	w.finish()
}

// Dispatchers that are cut off from Kafka for a while fall silent in time, come
// back, and double nothing: twelve seeds of a minute of trouble.
func TestCutOffAndBack(t *testing.T) {
	kafkatest.Seeds(t, 12, func(t *testing.T, seed uint64) {
		inBubble(t, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 2)), func(w *world) { w.trouble(seed) })
	})
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
