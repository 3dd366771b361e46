package delivery

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// One deadline covers every stage, and the result names the stage.
func TestOneDeadlineForAllStages(t *testing.T) {
	stall := func(w *world) { w.script(func(_ int, _ net.Conn, r *bufio.Reader) { read(r); r.ReadByte() }) }
	for want, c := range map[string]struct {
		url   string
		value []byte
		set   func(w *world)
	}{
		"resolving the host name": {"http://hooks.example/", nil, func(w *world) {
			w.sender.transports.dialer.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, &net.DNSError{UnwrapErr: ctx.Err(), Err: ctx.Err().Error(), Name: host, IsTimeout: true}
			}
		}},
		"connecting": {"http://hooks.example/", nil, func(w *world) { w.net.Host("").Cut(publicIP + ":80") }},
		"in the TLS handshake": {"https://hooks.example/", nil, func(w *world) {
			w.listen(publicIP + ":443") // accepts, and never says a word
		}},
		"sending the request": {"http://hooks.example/", make([]byte, 1<<20), func(w *world) {
			w.listen(publicIP + ":80") // reads nothing: the body does not fit between the ends
		}},
		"waiting for the answer": {"http://hooks.example/", nil, stall},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c.set(w)
				var dialing atomic.Int32
				dial := w.sender.transports.dialer.dialIP
				w.sender.transports.dialer.dialIP = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dialing.Add(1)
					defer dialing.Add(-1)
					return dial(ctx, network, addr)
				}
				e := endpoint(t, func(e *record.Endpoint) { e.URL, e.Timeout = c.url, seconds(7) })
				a := attempt(e)
				a.Delivery = event(func(d *record.Delivery) { d.Value = c.value })
				r := w.sender.Send(t.Context(), a)
				if r.Class != ClassFailed || r.Failure != FailureTimeout || r.Status != 0 || r.Duration != 7*time.Second || time.Since(r.StartedAt) != 7*time.Second {
					t.Errorf("%+v", r)
				}
				if r.Detail != "no answer within 7s: stopped while "+want {
					t.Errorf("detail %q", r.Detail)
				}
				// net/http dials in a context of its own; what it began for this attempt
				// ends with it all the same.
				synctest.Wait()
				if dialing.Load() != 0 || w.opened() != 0 {
					t.Errorf("%d dials and %d connections are left", dialing.Load(), w.opened())
				}
				w.net.Host("").Heal(publicIP + ":80")
			})
		})
	}
}

// The stages share the deadline: three of 3 s each don't fit in 7 s.
func TestDeadlineIsOfTheSum(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		lookup := w.sender.transports.dialer.lookup
		w.sender.transports.dialer.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			time.Sleep(3 * time.Second)
			return lookup(ctx, host)
		}
		w.net.Host("").Delay(3*time.Second, publicIP+":80")
		w.serve(answer(200))
		r := w.sender.Send(t.Context(), attempt(endpoint(t, func(e *record.Endpoint) { e.Timeout = seconds(7) })))
		if r.Failure != FailureTimeout || r.Duration != 7*time.Second {
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Minute)
		r = w.sender.Send(t.Context(), attempt(endpoint(t, func(e *record.Endpoint) { e.Timeout = seconds(13) })))
		if r.Class != ClassDelivered || r.Duration != 12*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// An answer that comes in one byte a second is cut off by the deadline too.
func TestDrippingHeader(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			read(r)
			for _, b := range []byte("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 1000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
		if r.Failure != FailureTimeout || r.Duration != 30*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

func TestCancelledByTheCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.serve(func(_ http.ResponseWriter, r *http.Request) { hang(r) })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		r := w.sender.Send(ctx, attempt(endpoint(t, nil)))
		if r.Class != ClassCancelled || r.Failure != FailureCancelled || time.Since(r.StartedAt) != 3*time.Second {
			t.Errorf("%+v", r)
		}
		// A context that is over makes no request.
		if r := w.sender.Send(ctx, attempt(endpoint(t, nil))); r.Class != ClassCancelled {
			t.Errorf("%+v", r)
		}
		if w.dialed() != 1 {
			t.Errorf("%d connections", w.dialed())
		}
	})
}

// An answer that is there counts, though the lease ends while its body is read.
func TestAnswerBeforeCancelCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		w.serve(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.Write(bytes.Repeat([]byte("x"), 10))
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
			cancel()
			hang(r)
		})
		if r := w.sender.Send(ctx, attempt(endpoint(t, nil))); r.Class != ClassDelivered {
			t.Errorf("%+v", r)
		}
	})
}

func TestEndlessHeaderIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var sent atomic.Int64
		w.script(func(_ int, c net.Conn, r *bufio.Reader) {
			read(r)
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			for i := 0; ; i++ {
				n, err := fmt.Fprintf(c, "X-%d: y\r\n", i)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		})
		r := w.sender.Send(t.Context(), attempt(endpoint(t, nil)))
		synctest.Wait()
		if r.Class != ClassFailed || r.Failure != FailureProtocol || sent.Load() > 1<<20 {
			t.Errorf("%+v, %d bytes", r, sent.Load())
		}
	})
}
