package vnet

import (
	"net"
	"net/netip"
	"sync"
)

type listener struct {
	net    *Network
	addr   netip.AddrPort
	accept chan *conn
	done   chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	case c := <-l.accept:
		return c, nil
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}

// Close refuses new dials and resets the connections that nobody accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, l.addr)
		l.net.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.accept:
				_ = c.SetLinger(0)
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }
