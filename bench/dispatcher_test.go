package bench_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafkatest"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// dispatch runs a dispatcher as it comes, until the returned function is called;
// only its log lines, one an attempt, go nowhere.
func dispatch(b *testing.B, c *kafkatest.Cluster, l load) (stop func()) {
	b.Helper()
	o := dispatcher.Options{
		Config: dispatcher.Defaults(), Attempts: dispatcher.DefaultAttempts(), Kafka: c.Kafka(), Topology: l.topo,
		Retry: retrytiers.Defaults(), Keys: l.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true},
		Version: "bench", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
		Transport: dispatcher.Transport{Dial: c.Dial},
	}
	d, err := dispatcher.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("dispatcher: %v", err)
		}
	}
}
