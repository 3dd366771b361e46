package delivery

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
	"github.com/reenvio/reenvio/internal/record"
)

const (
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	// publicIP is a public address, so that the default egress rule is what tests
	// run under. Nothing of it leaves the virtual network.
	publicIP = "93.184.215.14"
)

// world is a network in memory with names, and a sender on it.
type world struct {
	t      *testing.T
	net    *vnet.Network
	sender *Sender
	played sync.WaitGroup // handlers and scripts, to be over when the bubble ends

	mu    sync.Mutex
	names map[string][]netip.Addr
	dials []string // addresses, in order
	open  int      // connections that nobody has closed yet
}

// inBubble runs a test on a virtual network and a virtual clock.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Egress{AllowHTTP: true})
		test(t, w)
	})
}

func newWorld(t *testing.T, egress Egress) *world {
	w := &world{t: t, net: vnet.New(), names: map[string][]netip.Addr{}}
	w.name("hooks.example", publicIP)
	var err error
	w.sender, err = New(Options{Egress: egress, Version: "1.2.3", MaxInFlight: 64, Dial: w.dial, Lookup: w.lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.sender.Close()
		w.net.Close()
		w.played.Wait()
	})
	return w
}

func (w *world) name(host string, addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[host] = nil
	for _, a := range addrs {
		w.names[host] = append(w.names[host], netip.MustParseAddr(a))
	}
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	addrs, ok := w.names[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, addr)
	w.mu.Unlock()
	c, err := w.net.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.count(+1)
	return &counted{Conn: c, w: w}, nil
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
}

// opened is the number of our connections that are open.
func (w *world) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

type counted struct {
	net.Conn
	w    *world
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.w.count(-1) })
	return c.Conn.Close()
}

func (w *world) dialed() int { return len(w.dialedTo()) }

func (w *world) dialedTo() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dials)
}

func (w *world) listen(addr string) net.Listener {
	w.t.Helper()
	l, err := w.net.Listen("tcp", addr)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// serve answers plain HTTP at publicIP, port 80.
func (w *world) serve(h http.HandlerFunc) *http.Server {
	w.t.Helper()
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0)}
	server.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.played.Add(1)
		defer w.played.Done()
		h(rw, r)
	})
	l := w.listen(publicIP + ":80")
	go server.Serve(l)
	w.t.Cleanup(func() { server.Close() })
	return server
}

// serveTLS answers HTTPS at publicIP, port 443, over HTTP/2 for those who can.
// set may change the server before it starts.
func (w *world) serveTLS(i issued, h http.HandlerFunc, set func(*httptest.Server)) {
	w.t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	server.Listener = w.listen(publicIP + ":443")
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{i.pair}}
	if set != nil {
		set(server)
	}
	server.StartTLS()
	w.t.Cleanup(server.Close)
}

// script hands every connection to publicIP, port 80, to a function of its own,
// by number from 0, for endpoints that no HTTP server would play.
func (w *world) script(play func(n int, c net.Conn, r *bufio.Reader)) {
	w.t.Helper()
	l := w.listen(publicIP + ":80")
	w.played.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.played.Go(func() {
				defer c.Close()
				play(n, c, bufio.NewReader(c))
			})
		}
	})
}

// read takes one request off a connection of a script.
func read(r *bufio.Reader) (*http.Request, []byte) {
	request, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil
	}
	body, _ := io.ReadAll(request.Body)
	return request, body
}

func config(change func(*record.Endpoint)) record.Endpoint {
	e := record.Endpoint{ID: "w1", URL: "http://hooks.example/in/token-0123456789?key=query-0123456789"}
	e.Secrets = []record.Secret{{Value: testSecret}}
	if change != nil {
		change(&e)
	}
	return e
}

func endpoint(t testing.TB, change func(*record.Endpoint)) *Endpoint {
	t.Helper()
	e, err := Prepare(config(change))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func event(change func(*record.Delivery)) *record.Delivery {
	d := &record.Delivery{Event: record.Event{
		Webhook: "w1", ID: "evt_1", Type: "order.paid", ContentType: "application/json", Value: []byte(`{"a": 1}`),
	}}
	if change != nil {
		change(d)
	}
	return d
}

// secure is an endpoint over TLS that trusts a certificate.
func secure(t testing.TB, i issued) *Endpoint {
	return endpoint(t, func(e *record.Endpoint) {
		e.URL, e.TLS = "https://hooks.example/in/token-0123456789?key=query-0123456789", &record.TLS{CA: i.certPEM}
	})
}

func attempt(e *Endpoint) Attempt { return Attempt{Delivery: event(nil), Number: 1, Endpoint: e} }

func seconds(n int) record.Duration { return record.Duration(time.Duration(n) * time.Second) }

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hang waits until the client is gone.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body) // only then does the server watch the connection
	<-r.Context().Done()
}
