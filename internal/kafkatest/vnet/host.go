package vnet

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Host dials under a name of its own. Faults are set on the way from a host to
// a listening address; no address means all of them.
type Host struct {
	net  *Network
	name string
}

// Dial connects to a listener. On a cut path it waits, as a SYN that is never
// answered does, until the path heals or ctx ends.
func (h Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := parse(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(addr), Err: err}
	}
	p := path{h.name, addr}
	for {
		state, changed := h.net.state(p)
		if state.cut {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, fail(ctx.Err())
			}
		}
		if state.delay > 0 {
			timer := time.NewTimer(state.delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, fail(ctx.Err())
			}
		}
		break
	}
	h.net.mu.Lock()
	l := h.net.listeners[addr]
	if l == nil || h.net.closed {
		h.net.mu.Unlock()
		return nil, fail(syscall.ECONNREFUSED)
	}
	client, server := newPair(h.net, p)
	// Under the lock, so that a listener that closes finds every connection
	// that it has not accepted.
	select {
	case l.accept <- server:
	default:
		h.net.mu.Unlock()
		return nil, fail(syscall.ECONNREFUSED)
	}
	h.net.conns[client] = struct{}{}
	h.net.conns[server] = struct{}{}
	h.net.mu.Unlock()
	return client, nil
}

// Cut makes the way from this host to the addresses (all when none is named) a
// black hole: nothing is refused, nothing arrives, in either direction. What
// was written meanwhile arrives when the path heals.
func (h Host) Cut(addrs ...string) { h.set(addrs, func(s *pathState) { s.cut = true }) }

// Heal ends a Cut.
func (h Host) Heal(addrs ...string) { h.set(addrs, func(s *pathState) { s.cut = false }) }

// Delay makes every byte, either way, arrive this much later.
func (h Host) Delay(d time.Duration, addrs ...string) {
	h.set(addrs, func(s *pathState) { s.delay = d })
}

func (h Host) set(addrs []string, change func(*pathState)) {
	if len(addrs) == 0 {
		addrs = []string{anywhere.String()}
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	for _, a := range addrs {
		addr, err := parse(a)
		if err != nil {
			panic(err) // a test's own mistake
		}
		p := path{h.name, addr}
		s := h.net.paths[p]
		change(&s)
		h.net.paths[p] = s
	}
	h.net.wake()
}

// anywhere stands for all addresses in a path.
var anywhere = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// state is how a path is now, and a channel that closes when any path changes.
func (n *Network) state(p path) (pathState, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, all := n.paths[p], n.paths[path{p.from, anywhere}]
	s.cut = (s.cut || all.cut) && !n.closed
	s.delay = max(s.delay, all.delay)
	return s, n.changed
}
