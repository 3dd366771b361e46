package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestHandovers(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { handovers(t, seed) })
		})
	}
}

func handovers(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, kafkatest.Virtual(t), 6, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 2)))
	zero := 0
	for i := range 20 {
		w.webhook(fmt.Sprintf("w%d", i), func(e *record.Endpoint) { e.AutoPauseAfter = &zero })
	}
	hosts := map[string]vnet.Host{}
	stops := map[string]func(){}
	start := func(name string) {
		hosts[name] = w.cluster.Net.Host(name)
		stops[name] = w.dispatch(name, func(o *dispatcher.Options) {
			o.Kafka.Dial = hosts[name].Dial
			o.Transport.Dial = w.cluster.Net.Dial
		})
	}
	names := []string{"a", "b", "c"}
	for _, n := range names {
		start(n)
	}
	next := 0
	for range 60 {
		for i := range 20 {
			w.send(fmt.Sprintf("w%d", i), next, 2)
		}
		next += 2
		time.Sleep(time.Second)
		n := names[rnd.IntN(3)]
		switch rnd.IntN(8) {
		case 0:
			stops[n]()
			time.Sleep(time.Duration(rnd.IntN(12000)) * time.Millisecond)
			start(n)
		case 1:
			hosts[n].Cut()
			d := time.Duration(rnd.IntN(40000)) * time.Millisecond
			h := hosts[n]
			time.AfterFunc(d, func() { h.Heal() })
		}
	}
	for _, n := range names {
		hosts[n].Heal()
	}
	time.Sleep(3 * time.Minute)
	// check
	delivered := map[string]int{}
	seen := map[string]int{}
	for p := range int32(6) {
		_, err := kafka.ReadAll(t.Context(), w.client, w.topo.Attempts(), p, func(r *kgo.Record) error {
			a, err := record.ParseAttempt(r.Value)
			if err != nil {
				return err
			}
			key := fmt.Sprintf("%s/%s", a.Webhook, a.EventID)
			if a.Attempt != seen[key]+1 {
				t.Errorf("%s: attempt %d after %d", key, a.Attempt, seen[key])
			}
			seen[key] = a.Attempt
			if a.Outcome == record.Delivered {
				delivered[key]++
			} else if a.Outcome == record.Dead {
				t.Errorf("dead: %+v", a)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := 20 * next
	if len(delivered) != want {
		t.Errorf("%d delivered, want %d", len(delivered), want)
	}
	for k, n := range delivered {
		if n != 1 {
			t.Errorf("%s delivered %d times", k, n)
		}
	}
	attempts := 0
	for _, n := range seen {
		attempts += n
	}
	t.Logf("%d requests, %d attempts, %d events", len(w.receiver.Requests()), attempts, want)
}
