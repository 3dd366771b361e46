package delivery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

const (
	// fallbackDelay is how long an address has for itself before the next one is
	// tried beside it (RFC 8305, section 5: "Connection Attempt Delay").
	fallbackDelay = 250 * time.Millisecond
	// maxAddresses of one name are tried: with fallbackDelay the last one starts
	// after 1.75 s, and a name with a thousand addresses opens no thousand sockets.
	maxAddresses = 8
)

// resolve returns the addresses of host that may be dialed, and an error when
// there are none. An address that may not is passed over: a name with a public
// and a private one is reached at its public one.
func (d *dialer) resolve(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	exempt, err := d.rules.host(host, port)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{literal}
	} else if found, err = d.lookup(ctx, host); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	allowed := make([]netip.AddrPort, 0, len(found))
	var blocked error
	for _, addr := range found {
		at := netip.AddrPortFrom(addr.Unmap(), port)
		if err := d.rules.address(at, exempt); err != nil {
			blocked = err
			continue
		}
		allowed = append(allowed, at)
	}
	if len(allowed) == 0 {
		return nil, blocked
	}
	allowed = interleave(allowed)
	return allowed[:min(len(allowed), maxAddresses)], nil
}

// interleave alternates the address families, beginning with the resolver's
// first choice (RFC 8305, section 4), so that a broken family costs one delay.
func interleave(addrs []netip.AddrPort) []netip.AddrPort {
	var first, second []netip.AddrPort
	for _, a := range addrs {
		if a.Addr().Is4() == addrs[0].Addr().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	mixed := make([]netip.AddrPort, 0, len(addrs))
	for i := range max(len(first), len(second)) {
		if i < len(first) {
			mixed = append(mixed, first[i])
		}
		if i < len(second) {
			mixed = append(mixed, second[i])
		}
	}
	return mixed
}

// connect returns the first connection that comes about. The next address is
// tried when one has failed, or beside it after fallbackDelay.
func (d *dialer) connect(ctx context.Context, addrs []netip.AddrPort) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.connectTo(ctx, addrs[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		conn net.Conn
		err  error
	}
	outcomes := make(chan outcome, len(addrs)) // nobody waits for a loser
	started, pending := 0, 0
	start := func() {
		addr := addrs[started]
		started++
		pending++
		go func() {
			c, err := d.connectTo(ctx, addr)
			outcomes <- outcome{c, err}
		}()
	}
	start()
	next := time.NewTimer(fallbackDelay)
	defer next.Stop()
	var failures []error
	for {
		select {
		case <-next.C:
		case o := <-outcomes:
			pending--
			if o.err == nil {
				go func() { // close those that come too late
					for range pending {
						if late := <-outcomes; late.err == nil {
							late.conn.Close()
						}
					}
				}()
				return o.conn, nil
			}
			failures = append(failures, o.err)
			if len(failures) == len(addrs) {
				return nil, errors.Join(failures...)
			}
		}
		if started < len(addrs) {
			start()
			next.Reset(fallbackDelay)
		}
	}
}

func (d *dialer) connectTo(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	c, err := d.dialIP(ctx, "tcp", addr.String())
	// Over IPv4 this error means that the local ports are used up. Over IPv6 it
	// is also what a machine without an IPv6 address says of every endpoint, and
	// that must not look like a passing fault of ours: it would never end.
	if err != nil && addr.Addr().Is6() && errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, errNoRoute6
	}
	return c, err
}

var errNoRoute6 = errors.New("no IPv6 address to connect from")
