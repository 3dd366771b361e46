package delivery

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnectionsAreReused(t *testing.T) {
	for _, proto := range []string{"http/1.1", "http/1.1 over TLS", "h2"} {
		t.Run(proto, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var major atomic.Int32
				handler := func(rw http.ResponseWriter, r *http.Request) {
					major.Store(int32(r.ProtoMajor))
					fmt.Fprint(rw, "some body")
					time.Sleep(time.Second)
				}
				e := endpoint(t, nil)
				if proto == "http/1.1" {
					w.serve(handler)
				} else {
					i := issue(t, "hooks.example")
					w.serveTLS(i, handler, func(s *httptest.Server) { s.EnableHTTP2 = proto == "h2" })
					e = secure(t, i)
				}
				for n := range 5 {
					if r := w.sender.Send(t.Context(), attempt(e)); r.Class != ClassDelivered || r.Reused != (n > 0) || r.SecondTry {
						t.Fatalf("%d: %+v", n, r)
					}
				}
				if w.dialed() != 1 || (major.Load() == 2) != (proto == "h2") {
					t.Fatalf("%d connections, HTTP/%d", w.dialed(), major.Load())
				}
				// As many connections as requests at a time, none with HTTP/2; all are kept.
				for range 3 {
					var wg sync.WaitGroup
					for range 8 {
						wg.Go(func() { w.sender.Send(t.Context(), attempt(e)) })
					}
					wg.Wait()
				}
				want := 8
				if proto == "h2" {
					want = 1
				}
				if w.dialed() != want {
					t.Errorf("%d connections, want %d", w.dialed(), want)
				}
				time.Sleep(idleTimeout + time.Second)
				if r := w.sender.Send(t.Context(), attempt(e)); r.Reused || w.dialed() != want+1 {
					t.Errorf("an idle connection is kept too long: %+v", r)
				}
			})
		})
	}
}

// script that answers the first request on each connection.
func answerOnce(c net.Conn, r *bufio.Reader) bool {
	if request, _ := read(r); request == nil {
		return false
	}
	_, err := fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	return err == nil
}

// The endpoint closes its idle connection at the very moment the next request
// takes it:
//
//  1. the transport hands the idle connection to the request;
//  2. the endpoint's FIN arrives;
//  3. the request would be written.
func TestIdleConnectionClosedByTheEndpoint(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var requests atomic.Int32
		closeNow := make(chan struct{})
		w.script(func(n int, c net.Conn, r *bufio.Reader) {
			answerOnce(c, r)
			requests.Add(1)
			if n == 0 {
				<-closeNow
				return
			}
			r.ReadByte()
		})
		e := endpoint(t, nil)
		w.sender.Send(t.Context(), attempt(e))
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			close(closeNow)
			synctest.Wait()
		}})
		r := w.sender.Send(ctx, attempt(e))
		if r.Class != ClassDelivered || !r.SecondTry || r.Reused || requests.Load() != 2 || w.dialed() != 2 || w.opened() != 0 {
			t.Errorf("%+v, %d requests, %d connections, %d of them open", r, requests.Load(), w.dialed(), w.opened())
		}
	})
}

// dying is a connection that writes nothing once it is dead, and whose other end
// never says so.
type dying struct {
	net.Conn
	dead *atomic.Bool
}

func (c dying) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(b)
}

// Several idle connections are dead and refuse to be written to: however many,
// the request goes out once.
func TestIdleConnectionsFoundDead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var requests atomic.Int32
		w.serve(func(http.ResponseWriter, *http.Request) {
			requests.Add(1)
			time.Sleep(time.Second)
		})
		var dead atomic.Bool
		dial := w.sender.transports.dialer.dialIP
		w.sender.transports.dialer.dialIP = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if dead.Load() {
				return c, err
			}
			return dying{c, &dead}, err
		}
		e := endpoint(t, nil)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { w.sender.Send(t.Context(), attempt(e)) })
		}
		wg.Wait()
		dead.Store(true)
		r := w.sender.Send(t.Context(), attempt(e))
		if r.Class != ClassDelivered || !r.SecondTry || r.Reused || requests.Load() != 4 || w.dialed() != 4 {
			t.Errorf("%+v, %d requests, %d connections", r, requests.Load(), w.dialed())
		}
	})
}

// A request that went out may have been processed: it is not made again.
func TestNoSecondTryOnceWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var requests atomic.Int32
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			answerOnce(c, r)
			requests.Add(1)
			if request, _ := read(r); request != nil {
				requests.Add(1)
			}
		})
		e := endpoint(t, nil)
		w.sender.Send(t.Context(), attempt(e))
		r := w.sender.Send(t.Context(), attempt(e))
		if r.Class != ClassFailed || r.Failure != FailureReset || !r.Reused || r.SecondTry || requests.Load() != 2 || w.dialed() != 1 {
			t.Errorf("%+v, %d requests, %d connections", r, requests.Load(), w.dialed())
		}
	})
}

// A new connection that is closed at once is the endpoint's failure, even though
// nothing of the request was written.
func TestNoSecondTryOnANewConnection(t *testing.T) {
	for name, play := range map[string]func(int, net.Conn, *bufio.Reader){
		"closed at once":         func(int, net.Conn, *bufio.Reader) {},
		"closed after a request": func(_ int, _ net.Conn, r *bufio.Reader) { read(r) },
		"reset after a request": func(_ int, c net.Conn, r *bufio.Reader) {
			read(r)
			c.(interface{ SetLinger(int) error }).SetLinger(0)
		},
		"cut in the header": func(_ int, c net.Conn, r *bufio.Reader) { read(r); fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX-A: b\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.script(play)
				r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
				if r.Class != ClassFailed || r.Failure != FailureReset || r.SecondTry || w.dialed() != 1 {
					t.Errorf("%+v, %d connections", r, w.dialed())
				}
			})
		})
	}
}

// The same, where net/http finds out before it has begun to write: an error of
// no type.
func TestNewConnectionClosedBeforeItIsUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.script(func(int, net.Conn, *bufio.Reader) {})
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { synctest.Wait() }})
		r := w.sender.Send(ctx, attempt(endpoint(t, nil)))
		if r.Class != ClassFailed || r.Failure != FailureReset || r.SecondTry || w.dialed() != 1 {
			t.Errorf("%+v, %d connections", r, w.dialed())
		}
	})
}

// The second try is the last one, and its failure is the outcome.
func TestSecondTryFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		closeNow := make(chan struct{})
		w.script(func(n int, c net.Conn, r *bufio.Reader) {
			answerOnce(c, r)
			<-closeNow
		})
		e := endpoint(t, nil)
		w.sender.Send(t.Context(), attempt(e))
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			w.name("hooks.example", "93.184.215.99")
			close(closeNow)
			synctest.Wait()
		}})
		if r := w.sender.Send(ctx, attempt(e)); r.Failure != FailureRefused || !r.SecondTry || w.dialed() != 2 {
			t.Errorf("%+v, %d connections", r, w.dialed())
		}
	})
}

// An HTTP/2 connection whose other end has silently gone is found out by pings
// before the next request would wait on it.
func TestDeadHTTP2ConnectionIsNotReused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		i := issue(t, "hooks.example")
		w.serveTLS(i, answer(200), nil)
		e := secure(t, i)
		w.sender.Send(t.Context(), attempt(e))
		host := w.net.Host("")
		host.Cut(publicIP + ":443")
		time.Sleep(pingAfter + pingTimeout + time.Second)
		host.Heal(publicIP + ":443")
		if r := w.sender.Send(t.Context(), attempt(e)); r.Class != ClassDelivered || r.Reused || w.dialed() != 2 {
			t.Errorf("%+v, %d connections", r, w.dialed())
		}
	})
}

func TestCloseClosesIdleConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ended := make(chan struct{})
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			answerOnce(c, r)
			r.ReadByte()
			close(ended)
		})
		w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
		w.sender.Close()
		<-ended
	})
}
