package delivery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

func dialFault(errno syscall.Errno) func(*world) {
	return func(w *world) {
		w.sender.transports.dialer.dialIP = func(context.Context, string, string) (net.Conn, error) {
			addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.98.76.54:80"))
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", errno)}
		}
	}
}

func lookupFault(err net.DNSError) func(*world) {
	return func(w *world) {
		w.sender.transports.dialer.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			err.Name, err.Server = host, "10.98.76.53:53"
			return nil, &err
		}
	}
}

func overIPv6(then func(*world)) func(*world) {
	return func(w *world) { w.name("hooks.example", "2606:4700::1"); then(w) }
}

func TestFailuresWithoutAnAnswer(t *testing.T) {
	says := func(text string) func(*world) {
		return func(w *world) {
			w.script(func(_ int, c net.Conn, r *bufio.Reader) { read(r); fmt.Fprint(c, text); r.ReadByte() })
		}
	}
	for name, c := range map[string]struct {
		set     func(*world)
		class   Class
		failure Failure
		detail  string
	}{
		"refused":               {func(*world) {}, ClassFailed, FailureRefused, "connection refused"},
		"no such host":          {func(w *world) { w.name("hooks.example"); delete(w.names, "hooks.example") }, ClassFailed, FailureDNS, "no such host"},
		"no address":            {func(w *world) { w.name("hooks.example") }, ClassFailed, FailureDNS, "no such host"},
		"silent name server":    {lookupFault(net.DNSError{Err: "i/o timeout", IsTimeout: true, IsTemporary: true}), ClassFailed, FailureDNS, "the name server did not answer"},
		"server failure":        {lookupFault(net.DNSError{Err: "server misbehaving", IsTemporary: true}), ClassFailed, FailureDNS, "the host name could not be resolved"},
		"no descriptor for DNS": {lookupFault(net.DNSError{Err: "dial udp 10.98.76.53:53: socket: too many open files"}), ClassOurs, FailureLocal, "on this machine: too many open files"},
		"no descriptor":         {dialFault(syscall.EMFILE), ClassOurs, FailureLocal, "on this machine: too many open files"},
		"no descriptor at all":  {dialFault(syscall.ENFILE), ClassOurs, FailureLocal, "on this machine: too many open files in system"},
		"no port":               {dialFault(syscall.EADDRNOTAVAIL), ClassOurs, FailureLocal, "on this machine: cannot assign requested address"},
		"no buffer":             {dialFault(syscall.ENOBUFS), ClassOurs, FailureLocal, "on this machine: no buffer space available"},
		"no IPv6":               {overIPv6(dialFault(syscall.EADDRNOTAVAIL)), ClassFailed, FailureConnect, "could not connect: no IPv6 address to connect from"},
		"no route":              {dialFault(syscall.EHOSTUNREACH), ClassFailed, FailureConnect, "could not connect: no route to host"},
		"no network":            {dialFault(syscall.ENETUNREACH), ClassFailed, FailureConnect, "could not connect: network is unreachable"},
		"kernel timeout":        {dialFault(syscall.ETIMEDOUT), ClassFailed, FailureTimeout, "the endpoint's machine stopped answering"},
		"reset":                 {dialFault(syscall.ECONNRESET), ClassFailed, FailureReset, "the connection ended before the answer"},
		"other dial error": {func(w *world) {
			w.sender.transports.dialer.dialIP = func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("at 10.98.76.54")
			}
		}, ClassFailed, FailureConnect, "could not connect: no address answered"},
		"not HTTP":      {says("220 mail.example ESMTP\r\n"), ClassFailed, FailureProtocol, ""},
		"bad status":    {says("HTTP/1.1 2000 OK\r\n\r\n"), ClassFailed, FailureProtocol, ""},
		"bad header":    {says("HTTP/1.1 200 OK\r\n/in/token-0123456789?key=query-0123456789\r\n\r\n"), ClassFailed, FailureProtocol, ""},
		"bad length":    {says("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), ClassFailed, FailureProtocol, ""},
		"bad encoding":  {says("HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\n"), ClassFailed, FailureProtocol, ""},
		"HTTP/2 to 1.1": {says("\x00\x00\x00\x04\x00\x00\x00\x00\x00\r\n"), ClassFailed, FailureProtocol, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c.set(w)
				r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
				if r.Class != c.class || r.Failure != c.failure || r.Status != 0 || r.Detail == "" || c.detail != "" && r.Detail != c.detail {
					t.Errorf("%+v", r)
				}
				for _, hidden := range []string{"token-", "query-", "10.98.76"} {
					if strings.Contains(r.Detail, hidden) {
						t.Errorf("detail %q", r.Detail)
					}
				}
			})
		})
	}
}

// Every failure that is decided is in the closed set.
func TestFailuresAreListed(t *testing.T) {
	listed := map[Failure]bool{}
	for _, f := range Failures() {
		if f == FailureNone || listed[f] {
			t.Errorf("%q", f)
		}
		listed[f] = true
	}
	if len(listed) != 13 {
		t.Errorf("%d failures listed", len(listed))
	}
}

func TestNewRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"egress.allow":  {Egress: Egress{Allow: []string{"*"}}, Version: "1", MaxInFlight: 1},
		"max in flight": {Version: "1"},
		"version":       {Version: "1\n", MaxInFlight: 1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// One address out of reach and another one refused: what is said is what can be
// acted on.
func TestAddressesFailDifferently(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.name("hooks.example", "2606:4700::1", publicIP)
		w.sender.transports.dialer.dialIP = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "[") {
				return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
			}
			return w.net.Dial(ctx, network, addr)
		}
		e := endpoint(t, func(e *record.Endpoint) { e.Timeout = seconds(3) })
		if r := w.sender.Send(t.Context(), attempt(e)); r.Failure != FailureRefused {
			t.Errorf("%+v", r)
		}
	})
}
