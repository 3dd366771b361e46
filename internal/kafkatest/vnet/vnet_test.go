package vnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest/vnet"
)

func listen(t *testing.T, n *vnet.Network, addr string) net.Listener {
	t.Helper()
	ln, err := n.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// pair is both ends of a connection to 127.0.0.1, dialled by a host.
func pair(t *testing.T, n *vnet.Network, h vnet.Host) (client, server net.Conn) {
	t.Helper()
	ln := listen(t, n, "127.0.0.1:0")
	client, err := h.Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func bubble(t *testing.T, f func(t *testing.T, n *vnet.Network)) {
	synctest.Test(t, func(t *testing.T) {
		n := vnet.New()
		t.Cleanup(func() { _ = n.Close() })
		f(t, n)
	})
}

func TestBytesArriveInOrderBothWays(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		client, server := pair(t, n, n.Host(""))
		sent := bytes.Repeat([]byte("0123456789"), 200_000) // more than both buffers
		go func() {
			_, _ = io.Copy(server, server)
			_ = server.Close()
		}()
		go func() {
			_, _ = client.Write(sent)
			_ = client.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got, err := io.ReadAll(client)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("got %d bytes and %v, want the %d sent", len(got), err, len(sent))
		}
	})
}

func TestWriteBlocksOnlyWhenFull(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		client, server := pair(t, n, n.Host(""))
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		wrote, err := client.Write(make([]byte, 1<<20))
		if wrote != 256<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("wrote %d with %v, want the buffer's 262144 and a deadline", wrote, err)
		}
		_, _ = io.ReadFull(server, make([]byte, 100))
		_ = client.SetWriteDeadline(time.Time{})
		if wrote, err = client.Write(make([]byte, 100)); wrote != 100 || err != nil {
			t.Fatalf("wrote %d with %v after room was made", wrote, err)
		}
	})
}

func TestReadDeadlineTakesABlockedReadBack(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		client, _ := pair(t, n, n.Host(""))
		failed := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		_ = client.SetReadDeadline(time.Unix(1, 0))
		err := <-failed
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("got %v, want a timeout", err)
		}
		_ = client.SetReadDeadline(time.Now().Add(time.Minute))
		begin := time.Now()
		_, err = client.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Fatalf("got %v after %s, want a deadline after 1m", err, time.Since(begin))
		}
	})
}

func TestEndsLookLikeTCP(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		if _, err := n.Dial(t.Context(), "tcp", "127.0.0.1:9"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial without a listener: %v, want ECONNREFUSED", err)
		}
		client, server := pair(t, n, n.Host(""))
		_, _ = server.Write([]byte("last"))
		_ = server.Close()
		if got, err := io.ReadAll(client); string(got) != "last" || err != nil {
			t.Fatalf("after a close: %q and %v, want what was written and EOF", got, err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("write to a closed end: %v, want EPIPE", err)
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("read of a closed end: %v, want ErrClosed", err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("write of a closed end: %v, want ErrClosed", err)
		}
		if err := server.Close(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("second close: %v, want ErrClosed", err)
		}
		client, server = pair(t, n, n.Host(""))
		_ = server.(interface{ SetLinger(int) error }).SetLinger(0)
		_ = server.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("after a reset: %v, want ECONNRESET", err)
		}
	})
}

func TestClosingAListenerEndsWhatNobodyAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		ln := listen(t, n, "198.51.100.7:443")
		client, err := n.Dial(t.Context(), "tcp", "198.51.100.7:443")
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read: %v, want ECONNRESET", err)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("accept: %v, want ErrClosed", err)
		}
		listen(t, n, "198.51.100.7:443") // free again
		if _, err := n.Listen("tcp", "198.51.100.7:443"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("second listener: %v, want EADDRINUSE", err)
		}
	})
}

func TestOnlyAddressesOfThisNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		ln := listen(t, n, "localhost:80")
		if got := ln.Addr().String(); got != "127.0.0.1:80" {
			t.Fatalf("localhost is %s", got)
		}
		for _, addr := range []string{"example.com:80", "127.0.0.1", "127.0.0.1:http"} {
			if _, err := n.Dial(t.Context(), "tcp", addr); err == nil {
				t.Errorf("dialled %s", addr)
			}
			if _, err := n.Listen("tcp", addr); err == nil {
				t.Errorf("listens on %s", addr)
			}
		}
		_ = n.Close()
		if _, err := n.Dial(t.Context(), "tcp", "127.0.0.1:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialled a closed network: %v", err)
		}
		if _, err := n.Listen("tcp", "127.0.0.1:81"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listens on a closed network: %v", err)
		}
	})
}

// TestCutIsSilence: nothing fails and nothing arrives until the path heals; the
// same path of another host is not touched.
func TestCutIsSilence(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, n, a)
		other, otherServer := pair(t, n, b)
		a.Cut()
		_, _ = client.Write([]byte("up"))
		_, _ = server.Write([]byte("down"))
		_, _ = other.Write([]byte("ok"))
		for _, c := range []net.Conn{client, server} {
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			if got, err := c.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("read over a cut path: %d bytes and %v, want nothing for an hour", got, err)
			}
			_ = c.SetReadDeadline(time.Time{})
		}
		if _, err := io.ReadFull(otherServer, make([]byte, 2)); err != nil {
			t.Fatalf("the other host's connection: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.Dial(ctx, "tcp", client.RemoteAddr().String())
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("dial over a cut path: %v, want a timeout", err)
		}
		time.AfterFunc(time.Minute, func() { a.Heal() })
		got := make([]byte, 2)
		if _, err := io.ReadFull(server, got); err != nil || string(got) != "up" {
			t.Fatalf("after healing: %q and %v, want what was written", got, err)
		}
		if _, err := io.ReadFull(client, make([]byte, 4)); err != nil {
			t.Fatalf("after healing: %v", err)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		slow := n.Host("slow")
		client, server := pair(t, n, slow)
		slow.Delay(300*time.Millisecond, client.RemoteAddr().String())
		begin := time.Now()
		_, _ = client.Write([]byte("x"))
		_, _ = io.ReadFull(server, make([]byte, 1))
		_, _ = server.Write([]byte("x"))
		_, _ = io.ReadFull(client, make([]byte, 1))
		if took := time.Since(begin); took != 600*time.Millisecond {
			t.Fatalf("there and back took %s, want 600ms", took)
		}
		if _, err := slow.Dial(t.Context(), "tcp", client.RemoteAddr().String()); err != nil || time.Since(begin) != 900*time.Millisecond {
			t.Fatalf("a dial ended after %s with %v, want 300ms more", time.Since(begin), err)
		}
	})
}

func TestClosingEndsADialOverACutPath(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		listen(t, n, "127.0.0.1:80")
		host := n.Host("")
		host.Cut()
		failed := make(chan error)
		go func() {
			_, err := host.Dial(context.Background(), "tcp", "127.0.0.1:80")
			failed <- err
		}()
		synctest.Wait()
		_ = n.Close()
		if err := <-failed; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v, want ECONNREFUSED", err)
		}
	})
}

// TestHTTP: server, keep-alive, a handler that notices that its client left,
// and nothing left over in the bubble at the end.
func TestHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, n *vnet.Network) {
		ln := listen(t, n, "127.0.0.1:80")
		left := make(chan struct{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/hang" {
				<-r.Context().Done()
				close(left)
				return
			}
			time.Sleep(time.Second)
			_, _ = w.Write(body)
		})}
		go func() { _ = server.Serve(ln) }()
		t.Cleanup(func() { _ = server.Close() })
		transport := &http.Transport{DialContext: n.Dial}
		t.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport, Timeout: time.Minute}

		begin := time.Now()
		for range 3 {
			body := bytes.Repeat([]byte("x"), 1<<20)
			resp, err := client.Post("http://127.0.0.1/echo", "text/plain", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("got %d bytes and %v", len(got), err)
			}
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Fatalf("three requests of a second took %s of the bubble's time", took)
		}
		if resp, err := client.Post("http://127.0.0.1/hang", "text/plain", nil); err == nil {
			_ = resp.Body.Close()
			t.Fatal("a request that hangs was answered")
		}
		<-left
		if took := time.Since(begin); took != 63*time.Second {
			t.Fatalf("all took %s, want 3s and the client's minute", took)
		}
	})
}
