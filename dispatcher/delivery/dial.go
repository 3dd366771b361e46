package delivery

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
)

// dialer opens connections for the transports: it resolves, checks, and dials
// the checked address itself, so that a name can't mean one address while it is
// checked and another when it is dialed (DNS rebinding).
type dialer struct {
	rules  egressRules
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	dialIP func(ctx context.Context, network, addr string) (net.Conn, error)
}

// dial is http.Transport.DialContext, for URLs without TLS.
func (d *dialer) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := withinTry(ctx)
	defer cancel()
	raw, err := d.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw}, nil
}

// dialTLS makes http.Transport.DialTLSContext. The handshake is done here and
// not by net/http because net/http knows a fixed timeout for it only.
func (d *dialer) dialTLS(config *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		ctx, cancel := withinTry(ctx)
		defer cancel()
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		raw, err := d.open(ctx, addr)
		if err != nil {
			return nil, err
		}
		reached(ctx, stageTLS)
		config := config.Clone()
		config.ServerName = host
		secured := tls.Client(raw, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &handshakeError{err}
		}
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			return secured, nil // net/http takes no other type for HTTP/2
		}
		return &conn{Conn: secured}, nil
	}
}

// handshakeError is any failure of a TLS handshake, a connection that ended in
// it included.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// conn counts what was written to it by HTTP/1, over TLS: above the encryption,
// whose own messages (close_notify) are no part of a request.
type conn struct {
	net.Conn
	written atomic.Int64
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

func (d *dialer) open(ctx context.Context, addr string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("reading port: %w", err)
	}
	reached(ctx, stageDNS)
	addrs, err := d.resolve(ctx, host, uint16(port))
	if err != nil {
		return nil, err
	}
	reached(ctx, stageConnect)
	return d.connect(ctx, addrs)
}
