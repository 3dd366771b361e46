package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// process is one running dispatcher, on a host of its own.
type process struct {
	w     *world
	d     *Dispatcher
	host  vnet.Host
	stop  context.CancelFunc // as SIGTERM does
	ended chan struct{}
	err   error // of Run, once ended is closed

	registry *prometheus.Registry
}

// start runs a dispatcher. Its end with an error fails the test.
func (w *world) start(instance string, change ...func(*Options)) *process {
	w.t.Helper()
	var p *process
	w.t.Cleanup(func() { // runs after startQuietly's, which waits for the end
		if p != nil && p.err != nil {
			w.t.Errorf("dispatcher %s ended: %v", instance, p.err)
		}
	})
	p = w.startQuietly(instance, change...)
	return p
}

// startQuietly is start for a dispatcher that is expected to end with an error.
func (w *world) startQuietly(instance string, change ...func(*Options)) *process {
	w.t.Helper()
	host, registry := w.cluster.Net.Host(instance), prometheus.NewRegistry()
	o := Options{
		Config: Defaults(), Attempts: DefaultAttempts(), Kafka: w.cluster.Kafka(), Topology: w.topo,
		Retry: retrytiers.Defaults(), Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "test", Log: quiet().With("instance", instance), Registry: registry,
		Transport: Transport{Dial: host.Dial},
	}
	o.Kafka.InstanceID, o.Kafka.Dial = instance, host.Dial
	for _, c := range change {
		c(&o)
	}
	d, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{w: w, d: d, host: host, stop: cancel, ended: make(chan struct{}), registry: registry}
	go func() {
		defer close(p.ended)
		p.err = d.Run(ctx)
	}()
	w.t.Cleanup(func() {
		host.Heal() // of what it had been cut off from
		cancel()
		<-p.ended
	})
	return p
}

// wait returns what Run returned; a dispatcher that does not end fails the test.
func (p *process) wait() error {
	p.w.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.w.t.Fatalf("dispatcher %s has not ended within %s", p.d.instance, patience)
	}
	return p.err
}

// kill is SIGKILL as others see it: nothing of the process is heard any more.
func (p *process) kill() { p.host.Cut() }

// owns waits until the dispatcher has started the numbers.
func (p *process) owns(numbers ...int32) {
	p.w.t.Helper()
	for _, number := range numbers {
		p.w.until(fmt.Sprintf("%s has started number %d", p.d.instance, number), func() bool { return p.has(number) })
	}
}

func (p *process) has(number int32) bool {
	n := p.number(number)
	return n != nil && n.started.Load()
}

// number is the life of a number in the dispatcher's hands, or nil.
func (p *process) number(number int32) *number {
	p.d.ownership.mu.Lock()
	defer p.d.ownership.mu.Unlock()
	return p.d.ownership.lives[number]
}

// look runs f in the goroutine of a number that has started.
func (p *process) look(number int32, f func(n *number)) {
	p.w.t.Helper()
	n := p.number(number)
	if n == nil {
		p.w.t.Fatalf("%s does not own number %d", p.d.instance, number)
	}
	looked := make(chan struct{})
	n.inbox.post(func() { f(n); close(looked) })
	select {
	case <-looked:
	case <-n.done:
		p.w.t.Fatalf("number %d of %s has ended", number, p.d.instance)
	}
}

// metric is the sum of a metric over all its labels that have one of the values.
func (p *process) metric(name string, values ...string) (sum float64) {
	p.w.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != namespace+"_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			wanted := len(values) == 0
			for _, l := range m.GetLabel() {
				wanted = wanted || slices.Contains(values, l.GetValue())
			}
			if wanted {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
