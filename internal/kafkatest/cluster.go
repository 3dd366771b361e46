// Package kafkatest gives tests a Kafka cluster and an HTTP receiver.
//
// There are three clusters, and a test written against Cluster runs on each:
//
//   - Virtual: the embedded broker (kfake) on a network in memory, for
//     testing/synctest. Time is the bubble's, and paths can be cut.
//   - Fake: kfake on TCP, for processes of their own and for real time.
//   - Apache: three Apache Kafka brokers from their jars, started once per test
//     process, for truth.
//
// Start takes Fake or Apache by REENVIO_TEST_KAFKA, so that one suite runs on
// both.
//
// It fakes the broker and never the client: there is no interface around kgo.
// And it refuses a broker that is not on this machine, whatever a variable
// says: tests create topics and kill brokers.
package kafkatest

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
)

// Cluster is a running Kafka cluster.
type Cluster struct {
	// Brokers are the addresses to begin with, host:port.
	Brokers []string
	// Dial reaches the brokers and the receivers of this cluster; nil on TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Net is the network in memory; nil on TCP.
	Net *vnet.Network
	// Paths are further ways to the brokers, by name: those that Path has asked for.
	Paths map[string][]Hop
	// Fake is the embedded broker; nil on Apache Kafka.
	Fake *kfake.Cluster

	control brokers
}

// brokers stops and starts single brokers, by their place in Cluster.Brokers.
type brokers interface {
	kill(i int) error
	start(ctx context.Context, i ...int) error
	// terminate is a clean stop: leadership moves first, where the broker can.
	terminate(ctx context.Context, i int) error
}

// OnApache says whether REENVIO_TEST_KAFKA names Apache Kafka.
func OnApache() bool { return os.Getenv("REENVIO_TEST_KAFKA") == "apache" }

// Start is the cluster that REENVIO_TEST_KAFKA names: "fake" (the default) or
// "apache".
func Start(t testing.TB) *Cluster {
	t.Helper()
	switch kind := os.Getenv("REENVIO_TEST_KAFKA"); kind {
	case "", "fake":
		return Fake(t)
	case "apache":
		return Apache(t)
	default:
		t.Fatalf(`REENVIO_TEST_KAFKA is %q; it may be "fake" or "apache"`, kind)
		return nil
	}
}

// OnApache says whether this is a real cluster: its brokers take seconds where
// the embedded one takes none.
func (c *Cluster) OnApache() bool { return c.Fake == nil }

// Client is a plain client of the cluster, closed at the end of the test.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	base := []kgo.Opt{kgo.SeedBrokers(c.Brokers...)}
	if c.Dial != nil {
		base = append(base, kgo.Dialer(c.Dial))
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		t.Fatalf("making a client of the test cluster: %v", err)
	}
	t.Cleanup(cl.CloseAllowingRebalance)
	return cl
}

// Listen listens where the receivers of this cluster are reached: the network
// in memory, or 127.0.0.1.
func (c *Cluster) Listen(t testing.TB) net.Listener {
	t.Helper()
	listen := net.Listen
	if c.Net != nil {
		listen = c.Net.Listen
	}
	ln, err := listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for a test receiver: %v", err)
	}
	return ln
}

// KillBroker ends a broker at once, as kill -9 does.
func (c *Cluster) KillBroker(t testing.TB, i int) {
	t.Helper()
	c.broker(t, i)
	if err := c.control.kill(i); err != nil {
		t.Fatalf("killing broker %d: %v", i, err)
	}
}

// AwaitBrokerEnd waits until a broker of Apache Kafka has ended by itself, as one does
// that can't write. It can be started again.
func (c *Cluster) AwaitBrokerEnd(ctx context.Context, t testing.TB, i int) {
	t.Helper()
	c.broker(t, i)
	a, ok := c.control.(*apache)
	if !ok {
		t.Fatal("the embedded broker does not end by itself")
	}
	if err := a.awaitEnd(ctx, i); err != nil {
		t.Fatal(err)
	}
}

// StartBroker starts a broker that was killed or stopped, on its old data and
// address, and returns when it serves.
func (c *Cluster) StartBroker(t testing.TB, i int) {
	t.Helper()
	c.StartBrokers(t, i)
}

// StartBrokers does so for several at once: of brokers that are all down, one alone
// has no quorum and can't serve.
func (c *Cluster) StartBrokers(t testing.TB, which ...int) {
	t.Helper()
	for _, i := range which {
		c.broker(t, i)
	}
	if err := c.control.start(t.Context(), which...); err != nil {
		t.Fatalf("starting brokers %v: %v", which, err)
	}
}

// RestartBroker stops a broker cleanly and starts it again.
func (c *Cluster) RestartBroker(t testing.TB, i int) {
	t.Helper()
	c.broker(t, i)
	if err := c.control.terminate(t.Context(), i); err != nil {
		t.Fatalf("stopping broker %d: %v", i, err)
	}
	c.StartBroker(t, i)
}

func (c *Cluster) broker(t testing.TB, i int) {
	t.Helper()
	if c.control == nil {
		t.Fatal("brokers named by REENVIO_TEST_BROKERS are not this test's to stop; run it without")
	}
	if i < 0 || i >= len(c.Brokers) {
		t.Fatalf("there is no broker %d, only 0 to %d", i, len(c.Brokers)-1)
	}
}
