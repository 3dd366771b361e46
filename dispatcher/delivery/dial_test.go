package delivery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

func TestEgressAtDial(t *testing.T) {
	at := func(url string) *Endpoint { return endpoint(t, func(e *record.Endpoint) { e.URL = url }) }
	for _, c := range []struct {
		url    string
		addrs  []string
		egress Egress
		reach  string // "" is blocked
	}{
		{url: "http://hooks.example/", addrs: []string{publicIP}, reach: publicIP + ":80"},
		{url: "http://hooks.example/", addrs: []string{"10.0.0.5"}},
		{url: "http://hooks.example/", addrs: []string{"::ffff:10.0.0.5"}},
		{url: "http://hooks.example/", addrs: []string{"::ffff:" + publicIP}, reach: publicIP + ":80"},
		{url: "http://10.0.0.5/"},
		{url: "http://[::1]/"},
		{url: "http://[::ffff:127.0.0.1]:8080/"},
		{url: "http://169.254.169.254/latest/meta-data"},
		{url: "http://hooks.example/", addrs: []string{"10.0.0.5", publicIP, "::1"}, reach: publicIP + ":80"},
		{url: "http://10.0.0.5:8080/", egress: Egress{Allow: []string{"10.0.0.0/24:8080"}}, reach: "10.0.0.5:8080"},
		{url: "http://10.0.0.5:8081/", egress: Egress{Allow: []string{"10.0.0.0/24:8080"}}},
		{url: "http://hooks.example/", addrs: []string{"10.0.0.5"}, egress: Egress{Allow: []string{"hooks.example"}}, reach: "10.0.0.5:80"},
		{url: "http://HOOKS.example./", addrs: []string{"10.0.0.5"}, egress: Egress{Allow: []string{"Hooks.Example"}}, reach: "10.0.0.5:80"},
		{url: "http://hooks.example/", addrs: []string{"10.0.0.5"}, egress: Egress{Allow: []string{"other.example"}}},
		{url: "http://hooks.example/", addrs: []string{"10.0.0.5"}, egress: Egress{Allow: []string{"hooks.example"}, Deny: []string{"10.0.0.0/8"}}},
		{url: "http://hooks.example/", addrs: []string{publicIP}, egress: Egress{Deny: []string{"hooks.example"}}},
		{url: "http://hooks.example/", addrs: []string{publicIP}, egress: Egress{Deny: []string{publicIP}, Allow: []string{"hooks.example"}}},
	} {
		inBubble(t, func(t *testing.T, _ *world) {
			c.egress.AllowHTTP = true
			w := newWorld(t, c.egress)
			w.name("hooks.example", c.addrs...)
			w.name("HOOKS.example.", c.addrs...)
			r := w.sender.Send(t.Context(), attempt(at(c.url)))
			dialed := w.dialedTo()
			if c.reach == "" {
				if r.Class != ClassFailed || r.Failure != FailureURLBlocked || r.Detail == "" || len(dialed) > 0 {
					t.Errorf("%s at %v, %+v: %+v, dialed %v", c.url, c.addrs, c.egress, r, dialed)
				}
				for _, a := range c.addrs {
					if strings.Contains(r.Detail, a) {
						t.Errorf("detail %q tells the address", r.Detail)
					}
				}
				return
			}
			if len(dialed) != 1 || dialed[0] != c.reach || r.Failure != FailureRefused {
				t.Errorf("%s at %v, %+v: %+v, dialed %v", c.url, c.addrs, c.egress, r, dialed)
			}
		})
	}
}

func TestHTTPIsBlockedByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		w := newWorld(t, Egress{})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
		if r.Class != ClassFailed || r.Failure != FailureURLBlocked || !strings.Contains(r.Detail, "egress.allow_http") || w.dialed() != 0 {
			t.Errorf("%+v, %d connections", r, w.dialed())
		}
	})
}

// A name that changes its address between check and dial is dialed at the
// address that was checked.
func TestRebinding(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.serve(answer(200))
		lookups := 0
		w.sender.transports.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) {
			if lookups++; lookups > 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr(publicIP)}, nil
		}
		if r := w.sender.Send(t.Context(), attempt(endpoint(t, nil))); r.Class != ClassDelivered || lookups != 1 {
			t.Errorf("%+v, %d lookups", r, lookups)
		}
		w.sender.Close()
		if r := w.sender.Send(t.Context(), attempt(endpoint(t, nil))); r.Failure != FailureURLBlocked || lookups != 2 {
			t.Errorf("%+v, %d lookups", r, lookups)
		}
	})
}

func TestAddressesAreTriedInTurn(t *testing.T) {
	const v6a, v6b, v4b = "2606:4700::1", "2606:4700::2", "93.184.215.15"
	for name, c := range map[string]struct {
		addrs []string
		set   func(w *world)
		dials []string
		after time.Duration
		want  Failure
	}{
		"the first answers": {
			[]string{v6a, publicIP},
			func(w *world) { w.listen("[" + v6a + "]:80") },
			[]string{"[" + v6a + "]:80"},
			0, FailureTimeout,
		},
		"the first refuses": {
			[]string{v6a, v6b, publicIP, v4b},
			func(*world) {},
			[]string{"[" + v6a + "]:80", publicIP + ":80"},
			0, FailureNone,
		},
		"the first is silent": {
			[]string{v6a, v6b, publicIP, v4b},
			func(w *world) { w.net.Host("").Cut("["+v6a+"]:80", "["+v6b+"]:80") },
			[]string{"[" + v6a + "]:80", publicIP + ":80"},
			fallbackDelay, FailureNone,
		},
		"IPv4 preferred": {
			[]string{v4b, publicIP, v6a},
			func(w *world) { w.net.Host("").Cut(v4b+":80", "["+v6a+"]:80") },
			[]string{v4b + ":80", "[" + v6a + "]:80", publicIP + ":80"},
			2 * fallbackDelay, FailureNone,
		},
		"all refuse": {
			[]string{v6a, v6b, v4b},
			func(*world) {},
			[]string{"[" + v6a + "]:80", v4b + ":80", "[" + v6b + "]:80"},
			0, FailureRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.serve(answer(200))
				w.name("hooks.example", c.addrs...)
				c.set(w)
				r := w.sender.Send(t.Context(), attempt(endpoint(t, func(e *record.Endpoint) { e.Timeout = seconds(5) })))
				if r.Failure != c.want || c.want != FailureTimeout && r.Duration != c.after {
					t.Errorf("%+v", r)
				}
				if dialed := w.dialedTo(); !slices.Equal(dialed, c.dials) {
					t.Errorf("dialed %v, want %v", dialed, c.dials)
				}
			})
		})
	}
}

// A connection that comes about when another one has already won is closed.
func TestLateConnectionsAreClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		closed := make(chan struct{})
		d := w.sender.transports.dialer
		d.dialIP = func(_ context.Context, _, addr string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			if addr == publicIP+":80" {
				time.Sleep(time.Second) // deaf to its context, as a careless dialer is
				go func() {
					theirs.Read(make([]byte, 1))
					close(closed)
				}()
			}
			return ours, nil
		}
		c, err := d.connect(t.Context(), []netip.AddrPort{netip.MustParseAddrPort(publicIP + ":80"), netip.MustParseAddrPort("93.184.215.15:80")})
		if err != nil {
			t.Fatal(err)
		}
		<-closed
		c.Close()
	})
}

func TestManyAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var addrs []string
		for i := range 100 {
			addrs = append(addrs, netip.AddrFrom4([4]byte{93, 184, 1, byte(i)}).String())
		}
		w.name("hooks.example", addrs...)
		if r := w.sender.Send(t.Context(), attempt(endpoint(t, nil))); r.Failure != FailureRefused || w.dialed() != maxAddresses {
			t.Errorf("%+v, %d dials", r, w.dialed())
		}
	})
}
