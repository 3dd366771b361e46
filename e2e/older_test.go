package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// Brokers with the older transaction protocol (transaction.version 1, before
// KIP-890): everything is delivered, tried again, buried and parked on them, and a
// crash and a zombie double nothing.
func TestOlderTransactions(t *testing.T) {
	if !kafkatest.OnApache() {
		synctest.Test(t, func(t *testing.T) {
			newWorld(t, kafkatest.Virtual(t, kfake.MaxVersions(kversion.V3_8_0())), kafkatest.FailSome(0.4, 2)).olderTransactions()
		})
		return
	}
	t.Parallel()
	cluster := kafkatest.Apache(t, kafkatest.Brokers(1), kafkatest.Feature("transaction.version", 1))
	newWorld(t, cluster, kafkatest.FailSome(0.4, 2)).olderTransactions()
}

func (w *world) olderTransactions() {
	few := func(e *record.Endpoint) { e.MaxAttempts = 3 }
	traffic := []string{"w0", "w1", "w2", "w3"}
	for _, id := range traffic {
		w.webhook(id, neverPause, few)
	}
	w.webhook("dies", neverPause, func(e *record.Endpoint) { e.MaxAttempts = 2 })
	w.receiver.Answer("dies", kafkatest.Always(http.StatusInternalServerError))
	w.webhook("down", few)
	w.receiver.Answer("down", kafkatest.Always(http.StatusInternalServerError))
	a, b := w.dispatchThrough("a"), w.dispatchThrough("b")
	next := 0
	send := func(seconds int) {
		for until := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(until); next++ {
			for _, id := range traffic {
				w.send(id, next, 1)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	w.send("dies", 0, 5)
	w.send("down", 0, 20)
	send(5)
	w.until("for the pause", time.Minute, func() bool { s := w.state("down"); return s.HasPause(record.PauseFailures) })

	a.crash()
	a = w.dispatchThrough("a")
	send(5)
	b.cutOff()
	send(13) // its session ends, and a has its numbers
	b.heal()
	send(5)
	a.crash()
	w.dispatchThrough("a")

	w.receiver.Answer("down", kafkatest.Always(http.StatusOK))
	if r := w.command("down", record.ActionResume); r.Result != record.ResultDone {
		w.t.Fatalf("resume: %+v", r)
	}
	w.finish()
	if dead := w.dead(); len(dead) != 5 {
		w.t.Errorf("%d are dead, want the 5 of the webhook that always fails", len(dead))
	}
}

// gated is a dispatcher whose ways to the brokers and to the endpoints can be shut.
type gated struct {
	w         *world
	instance  string
	brokers   *kafkatest.Gate
	endpoints *kafkatest.Gate
}

// dispatchThrough runs a dispatcher behind gates. It is started again when it exits for
// a twin, as in dispatchFrom.
func (w *world) dispatchThrough(instance string) *gated {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g := &gated{w: w, instance: instance, brokers: kafkatest.NewGate(w.cluster.Dial), endpoints: kafkatest.NewGate(w.cluster.Dial)}
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			d := w.newDispatcher(instance, func(o *dispatcher.Options) { o.Kafka.Dial, o.Transport.Dial = g.brokers.Dial, g.endpoints.Dial })
			err := d.Run(ctx)
			switch {
			case err == nil || ctx.Err() != nil:
				return
			case !strings.Contains(err.Error(), "another dispatcher runs with kafka.instance_id"):
				w.t.Errorf("dispatcher %s: %v", instance, err)
				return
			}
			now := time.Now()
			w.incident(history.Incident{Kind: "crash", Instance: instance, From: now, To: now})
		}
	})
	stop := func() { cancel(); ended.Wait() } // by two at once, perhaps
	w.running[instance] = stop
	w.t.Cleanup(stop)
	return g
}

// crash is kill -9 as others see it: its connections break, and nothing more is heard of it.
func (g *gated) crash() {
	from := time.Now()
	g.endpoints.Shut()
	g.brokers.Shut()
	g.w.incident(history.Incident{Kind: "crash", Instance: g.instance, From: from, To: time.Now()})
	go g.w.running[g.instance]() // what is left of it ends in its own time
	delete(g.w.running, g.instance)
}

// cutOff takes the brokers away from it, and not the endpoints.
func (g *gated) cutOff() {
	g.brokers.Shut()
	now := time.Now()
	g.w.incident(history.Incident{Kind: "lost lease", Instance: g.instance, From: now, To: now.Add(lease)})
}

func (g *gated) heal() { g.brokers.Open() }
