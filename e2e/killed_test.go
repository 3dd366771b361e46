package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// Dispatchers that are killed at any moment, and started again at once or after
// another has taken over, lose and double nothing: four seeds of a minute. The crash
// tests do the same to processes; this costs no time.
func TestKilledAgainAndAgain(t *testing.T) {
	kafkatest.Seeds(t, 4, func(t *testing.T, seed uint64) {
		inBubble(t, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 2)), func(w *world) { w.kills(seed) })
	})
}

func (w *world) kills(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	var webhooks []string
	for i := range 20 {
		id := fmt.Sprintf("w%d", i)
		webhooks = append(webhooks, id)
		if i%4 > 0 {
			w.webhook(id, neverPause)
			continue
		}
		w.webhook(id) // it pauses, and its events are parked
		w.receiver.Answer(id, kafkatest.Always(http.StatusInternalServerError))
	}
	names := []string{"a", "b"}
	kill := map[string]func(){}
	for _, name := range names {
		kill[name] = w.dispatchMortal(name, 0)
	}
	back := map[string]time.Time{} // when one that is dead is started again
	for second := range 60 {
		for _, id := range webhooks {
			w.send(id, second*2, 2)
		}
		time.Sleep(time.Duration(500+random.IntN(1000)) * time.Millisecond)
		name := names[random.IntN(len(names))]
		switch {
		case kill[name] == nil && time.Now().After(back[name]):
			kill[name] = w.dispatchMortal(name, second+1)
		case kill[name] != nil && random.IntN(3) == 0:
			kill[name]()
			kill[name] = nil
			if random.IntN(2) == 0 { // at once, as supervisors do
				kill[name] = w.dispatchMortal(name, second+1)
				break
			}
			back[name] = time.Now().Add(time.Duration(random.IntN(14_000)) * time.Millisecond)
		}
	}
	for _, name := range names {
		if kill[name] == nil {
			w.dispatchMortal(name, 61)
		}
	}
	time.Sleep(time.Minute)
	w.finish()
}

// dispatchMortal runs a dispatcher on a host of its own, of its instance and life, and
// returns what kills it as others see it: nothing of it is heard any more.
func (w *world) dispatchMortal(instance string, life int) (kill func()) {
	w.t.Helper()
	host := w.cluster.Net.Host(fmt.Sprint(instance, life))
	d := w.newDispatcher(instance, func(o *dispatcher.Options) {
		o.Kafka.Dial, o.Transport.Dial = host.Dial, host.Dial
	})
	ctx, cancel := context.WithCancel(context.Background())
	var dead atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := d.Run(ctx); err != nil && !dead.Load() {
			w.t.Errorf("dispatcher %s: %v", instance, err)
		}
	}()
	stop := func() { cancel(); <-ended }
	w.running[instance] = stop
	w.t.Cleanup(stop)
	return func() {
		dead.Store(true)
		host.Cut()
		delete(w.running, instance)
		now := time.Now()
		w.incident(history.Incident{Kind: "crash", Instance: instance, From: now, To: now})
	}
}
