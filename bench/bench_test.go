package bench_test

import (
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

var (
	events   = flag.Int("events", 60_000, "events of one measurement")
	webhooks = flag.Int("webhooks", 240, "webhooks that they go to; each has one request at a time, and the bare loop as many workers")
	size     = flag.Int("size", 512, "bytes of an event's value")
	limit    = flag.Duration("limit", 3*time.Minute, "the longest that one measurement may take")
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// BenchmarkDeliveries reports both rates and their ratio; one iteration is one
// measurement of each side. parked is how many events a dispatcher put aside and
// read again, of all those of a measurement.
func BenchmarkDeliveries(b *testing.B) {
	for _, c := range []struct {
		name    string
		backlog int
	}{
		{"steady", 12_000},   // events keep coming, and up to 1,000 wait in each partition
		{"backlog", *events}, // all of them are there at the start, as after an outage
	} {
		b.Run(c.name, func(b *testing.B) { deliveries(b, c.backlog) })
	}
}

func deliveries(b *testing.B, backlog int) {
	c := kafkatest.Start(b)
	to := newReceiver(b, c)
	var plain, ours float64
	rounds, parked := 0, 0
	for b.Loop() {
		plain += measure(b, c, to, backlog, func(l load) func() { return bare(b, c, l, to, *webhooks) })
		ours += measure(b, c, to, backlog, func(l load) func() {
			stop := dispatch(b, c, l)
			return func() { stop(); parked += l.parked(b) }
		})
		rounds++
	}
	b.ReportMetric(plain/float64(rounds), "bare/s")
	b.ReportMetric(ours/float64(rounds), "dispatcher/s")
	b.ReportMetric(ours/plain, "ratio")
	b.ReportMetric(float64(parked)/float64(rounds), "parked")
	b.ReportMetric(0, "ns/op") // the time of a whole measurement says nothing
}

func measure(b *testing.B, c *kafkatest.Cluster, to *receiver, backlog int, start func(load) (stop func())) float64 {
	b.Helper()
	l, m := newLoad(b, c, to), to.expect(*events)
	if backlog >= *events {
		l.feed(b, m, backlog)
	} else {
		var feeding sync.WaitGroup
		defer feeding.Wait()
		feeding.Go(func() { l.feed(b, m, backlog) })
	}
	stop := start(l)
	defer stop()
	return m.rate(b, *limit)
}
