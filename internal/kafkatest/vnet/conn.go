package vnet

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// conn is one end of a connection: it reads what the other end wrote.
type conn struct {
	net           *Network
	path          path
	local, remote netip.AddrPort
	in, out       *stream
	readBy        *deadline
	writeBy       *deadline

	mu     sync.Mutex
	linger int // as SetLinger; -1 is the usual close
	closed bool
}

// newPair makes both ends of a connection that came over p. The client dials from
// the address that it dials to. The caller holds the network's lock.
func newPair(n *Network, p path) (client, server *conn) {
	n.nextClient++
	from := netip.AddrPortFrom(p.to.Addr(), 32768+n.nextClient%28000)
	up, down := newStream(), newStream()
	client = newConn(n, p, from, p.to, down, up)
	server = newConn(n, p, p.to, from, up, down)
	return client, server
}

func newConn(n *Network, p path, local, remote netip.AddrPort, in, out *stream) *conn {
	return &conn{
		net: n, path: p, local: local, remote: remote, in: in, out: out,
		readBy: newDeadline(), writeBy: newDeadline(), linger: -1,
	}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b, c.readBy, func() (pathState, <-chan struct{}) { return c.net.state(c.path) })
	return n, c.wrap("read", err)
}

func (c *conn) Write(b []byte) (int, error) {
	state, _ := c.net.state(c.path)
	n, err := c.out.write(b, c.writeBy, state.delay)
	return n, c.wrap("write", err)
}

// Close ends both directions: the other end reads what is on its way and then
// EOF, or ECONNRESET at once after SetLinger(0).
func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.wrap("close", net.ErrClosed)
	}
	c.closed = true
	reset := c.linger == 0
	c.mu.Unlock()

	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
	c.in.closeRead()
	c.out.closeWrite(reset)
	return nil
}

// CloseWrite ends the direction of this end's writes only, as TCP's FIN does.
func (c *conn) CloseWrite() error {
	c.out.closeWrite(false)
	return nil
}

// SetLinger is TCPConn's: with 0 a Close is a reset.
func (c *conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = sec
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

// wrap gives an error the shape of the net package's. EOF stays bare, as there.
func (c *conn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
