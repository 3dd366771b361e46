package kafkatest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Gate is one process's way into a network. Shut, its connections break and new ones
// are refused, as if the process were dead, or everybody else.
type Gate struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]struct{}
}

// NewGate is an open gate before a network; nil is the machine's own.
func NewGate(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Gate {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return &Gate{dial: dial, conns: map[net.Conn]struct{}{}}
}

// Shut breaks all connections and lets no new one through.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
}

// Open ends a Shut.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// Dial connects through the gate. It holds no lock meanwhile: in a bubble who waits
// for one holds the clock.
func (g *Gate) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if g.isShut() {
		return nil, refused(network)
	}
	c, err := g.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		_ = c.Close()
		return nil, refused(network)
	}
	g.conns[c] = struct{}{}
	return &gatedConn{c, g}, nil
}

func (g *Gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func refused(network string) error {
	return &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

type gatedConn struct {
	net.Conn
	gate *Gate
}

func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c.Conn)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
