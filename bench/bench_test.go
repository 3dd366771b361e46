package bench

import (
	"flag"
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

// BenchmarkDeliveries reports the ratio and both rates; one iteration is one
// measurement of each side.
func BenchmarkDeliveries(b *testing.B) {
	c := kafkatest.Start(b)
	to := newReceiver(b, c)
	var bareRate, ours float64
	rounds := 0
	for b.Loop() {
		l := newLoad(b, c, to, *webhooks, *events, *size)
		bareRate += measure(b, to, func() func() { return bare(b, c, l, to, *webhooks) })
		ours += measure(b, to, func() func() { return dispatch(b, c, l) })
		rounds++
	}
	b.ReportMetric(bareRate/float64(rounds), "bare/s")
	b.ReportMetric(ours/float64(rounds), "dispatcher/s")
	b.ReportMetric(ours/bareRate, "ratio")
	b.ReportMetric(0, "ns/op") // the time of a whole measurement says nothing
}

func measure(b *testing.B, to *receiver, start func() (stop func())) float64 {
	b.Helper()
	m := to.expect(*events)
	stop := start()
	defer stop()
	return m.rate(b, *limit)
}
