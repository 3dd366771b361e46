package dispatcher

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/topology"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// testOptions are those of a dispatcher that never reaches Kafka.
func testOptions(t *testing.T) Options {
	t.Helper()
	topo, err := topology.New(topology.Config{Prefix: "t.", Partitions: 3, Replication: 1},
		[]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Config: Defaults(), Attempts: DefaultAttempts(), Kafka: kafka.Config{Brokers: []string{"127.0.0.1:1"}, InstanceID: "a"},
		Topology: topo, Retry: retrytiers.Defaults(), Keys: testKeys(t),
		Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true}, Version: "test",
		Log: quiet(), Registry: prometheus.NewRegistry(),
	}
}

// testDispatcher is one that is not started: for its parts.
func testDispatcher(t *testing.T) *Dispatcher {
	t.Helper()
	d, err := New(testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	d.topics = d.topo.Owned()
	t.Cleanup(d.cancel)
	return d
}
