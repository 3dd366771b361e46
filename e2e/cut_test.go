package e2e_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/e2e/history"
)

// dispatchFrom runs a dispatcher that reaches Kafka from a host of its own, so that
// it alone can be cut off. Its requests go over the common network. It is started
// again when it exits for a twin: a request to join that was on its way when the
// network went away, and arrives when it comes back, is one.
func (w *world) dispatchFrom(instance string) {
	w.t.Helper()
	host := w.cluster.Net.Host(instance)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			d := w.newDispatcher(instance, func(o *dispatcher.Options) { o.Kafka.Dial = host.Dial })
			err := d.Run(ctx)
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), "another dispatcher runs with kafka.instance_id") {
				w.t.Errorf("dispatcher %s: %v", instance, err)
				return
			}
			now := time.Now()
			w.incident(history.Incident{Kind: "crash", Instance: instance, From: now, To: now})
		}
	})
	w.running[instance] = sync.OnceFunc(func() { cancel(); ended.Wait() })
	w.t.Cleanup(w.running[instance])
}

// lease is for how long a dispatcher may begin requests that has heard nothing: half
// the session timeout.
const lease = 5 * time.Second

// cutOff cuts a dispatcher off from Kafka, and returns when that ends. Requests may
// begin for half the session timeout, and run for all of it.
func (w *world) cutOff(instance string, length time.Duration) (until time.Time) {
	host := w.cluster.Net.Host(instance)
	host.Cut()
	time.AfterFunc(length, func() { host.Heal() })
	now := time.Now()
	// What begins later than a lease after the cut is begun by another owner, or after
	// the heal: in both cases its outcome is committed.
	w.incident(history.Incident{Kind: "lost lease", Instance: instance, From: now, To: now.Add(lease)})
	return now.Add(length)
}

func (w *world) incident(i history.Incident) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.incidents = append(w.incidents, i)
}
