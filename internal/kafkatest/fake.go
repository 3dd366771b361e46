package kafkatest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
)

// Fake is the embedded broker as three brokers on TCP, 127.0.0.1.
func Fake(t testing.TB, opts ...kfake.Opt) *Cluster {
	t.Helper()
	return fake(t, &Cluster{}, net.Listen, opts)
}

// Virtual is the embedded broker on a network in memory. Call it inside a
// synctest bubble, with the bubble's t: all its goroutines belong to the bubble
// and end with it.
//
// A goroutine that waits for a mutex holds the bubble's clock. kgo's automatic
// commit does so while the group rebalances, for ever in a bubble: consumer
// groups there need kgo.DisableAutoCommit.
func Virtual(t testing.TB, opts ...kfake.Opt) *Cluster {
	t.Helper()
	network := vnet.New()
	// Cleanups run last in, first out: the network is the last to go, and takes
	// with it what a test forgot to close.
	t.Cleanup(func() { _ = network.Close() })
	return fake(t, &Cluster{Net: network, Dial: network.Dial}, network.Listen, opts)
}

func fake(t testing.TB, c *Cluster, listen listenFunc, opts []kfake.Opt) *Cluster {
	t.Helper()
	nodes := &fakeBrokers{listen: listen, conns: map[string]map[net.Conn]struct{}{}}
	base := []kfake.Opt{kfake.NumBrokers(3), kfake.ListenFn(nodes.listenTracked)}
	cluster, err := kfake.NewCluster(append(base, opts...)...)
	if err != nil {
		t.Fatalf("starting the embedded broker: %v", err)
	}
	t.Cleanup(cluster.Close)
	nodes.cluster = cluster
	nodes.addrs = cluster.ListenAddrs()
	c.Fake, c.Brokers, c.control = cluster, nodes.addrs, nodes
	return c
}

type listenFunc func(network, address string) (net.Listener, error)

// fakeBrokers kills and starts brokers of a kfake cluster. kfake's RemoveNode
// closes the listener only; a dead broker's connections die too, so they are
// counted here.
type fakeBrokers struct {
	listen  listenFunc
	cluster *kfake.Cluster
	addrs   []string

	mu    sync.Mutex
	conns map[string]map[net.Conn]struct{} // by the listener's address
}

func (f *fakeBrokers) kill(i int) error {
	if err := f.cluster.RemoveNode(int32(i)); err != nil {
		return err
	}
	// Coordinators live on by hash over what is left; clients must ask again,
	// as they must when Apache Kafka elects another one.
	f.cluster.RehashCoordinators()
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns[f.addrs[i]] {
		_ = c.Close()
	}
	return nil
}

func (f *fakeBrokers) terminate(_ context.Context, i int) error { return f.kill(i) }

func (f *fakeBrokers) start(_ context.Context, which ...int) error {
	for _, i := range which {
		if err := f.add(i); err != nil {
			return err
		}
	}
	f.cluster.RehashCoordinators()
	return nil
}

func (f *fakeBrokers) add(i int) error {
	_, port, err := net.SplitHostPort(f.addrs[i])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	if _, _, err := f.cluster.AddNode(int32(i), n); err != nil {
		return fmt.Errorf("adding node %d at its old port %d: %w", i, n, err)
	}
	return nil
}

func (f *fakeBrokers) listenTracked(network, address string) (net.Listener, error) {
	ln, err := f.listen(network, address)
	if err != nil {
		return nil, err
	}
	return &trackedListener{Listener: ln, of: f}, nil
}

type trackedListener struct {
	net.Listener
	of *fakeBrokers
}

func (l *trackedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	t := &trackedConn{Conn: c, addr: addr, of: l.of}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.conns[addr] == nil {
		l.of.conns[addr] = map[net.Conn]struct{}{}
	}
	// The conn itself is kept, not its wrapper: kill closes under the lock.
	l.of.conns[addr][c] = struct{}{}
	return t, nil
}

type trackedConn struct {
	net.Conn
	addr string
	of   *fakeBrokers
}

func (c *trackedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns[c.addr], c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
