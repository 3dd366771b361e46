// Package vnet is a network in memory, for tests inside a testing/synctest
// bubble. A goroutine that waits on a real socket is not durably blocked, so
// the clock of a bubble would stand still; here every wait is a wait on a
// channel. It looks like TCP where the code under test can tell: addresses are
// *net.TCPAddr, a dial that nobody listens to is ECONNREFUSED, a reset is
// ECONNRESET, deadlines are deadlines, and a write blocks only when the buffer
// of its direction is full.
//
// It also has what a real network has only on bad days: a path can be cut, so
// that nothing is refused and nothing arrives, and it can be slow.
//
// It has no names: who dials resolves first, as the code under test does. And it
// reaches no real network, whatever address it is asked for.
package vnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// bufferBytes is what one direction of a connection holds before its writer
// has to wait; about what Linux gives a loopback socket.
const bufferBytes = 256 << 10

// backlog is how many connections may wait to be accepted: more than any test
// dials at once, so that a full one is a test's own mistake.
const backlog = 1 << 14

// Network is one network. Make it inside the bubble that uses it: its channels
// belong to the bubble.
type Network struct {
	mu         sync.Mutex
	listeners  map[netip.AddrPort]*listener
	nextPort   uint16
	nextClient uint16
	conns      map[*conn]struct{}
	paths      map[path]pathState
	changed    chan struct{} // closed and replaced when a path changes
	closed     bool
}

// path is a direction of dialling: from a host by name to a listening address.
type path struct {
	from string
	to   netip.AddrPort
}

type pathState struct {
	cut   bool
	delay time.Duration
}

// New returns an empty network.
func New() *Network {
	return &Network{
		listeners: map[netip.AddrPort]*listener{},
		nextPort:  20000,
		conns:     map[*conn]struct{}{},
		paths:     map[path]pathState{},
		changed:   make(chan struct{}),
	}
}

// Listen listens on an IP address and port of this network, any address:
// a test of an address check may listen on a public one. Port 0 takes a free
// one.
func (n *Network) Listen(network, address string) (net.Listener, error) {
	addr, err := parse(address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: net.TCPAddrFromAddrPort(addr), Err: net.ErrClosed}
	}
	if addr.Port() == 0 {
		addr = n.freePort(addr.Addr())
	}
	if _, taken := n.listeners[addr]; taken {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: net.TCPAddrFromAddrPort(addr), Err: syscall.EADDRINUSE}
	}
	l := &listener{net: n, addr: addr, accept: make(chan *conn, backlog), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

func (n *Network) freePort(ip netip.Addr) netip.AddrPort {
	for {
		n.nextPort++
		addr := netip.AddrPortFrom(ip, n.nextPort)
		if _, taken := n.listeners[addr]; !taken {
			return addr
		}
	}
}

// Dial connects as the host without a name; see Host.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.Host("").Dial(ctx, network, address)
}

// Host is one end of the network by name, so that a fault can hit one process
// and spare its twin.
func (n *Network) Host(name string) Host { return Host{net: n, name: name} }

// Close breaks every connection and listener, so that nothing of the bubble
// waits on this network any more.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.wake()
	var ls []*listener
	for _, l := range n.listeners {
		ls = append(ls, l)
	}
	var cs []*conn
	for c := range n.conns {
		cs = append(cs, c)
	}
	n.mu.Unlock()
	for _, l := range ls {
		_ = l.Close()
	}
	for _, c := range cs {
		_ = c.Close()
	}
	return nil
}

// wake lets everyone who waits on a path look again. The caller holds the lock.
func (n *Network) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func parse(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "localhost" || host == "" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("the virtual network has no names, only addresses: %w", err)
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}
