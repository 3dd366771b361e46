package chaos_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// A link that is cut holds back what is written, also on a new connection, and
// delivers it when it heals; one that is slow is late; a reset is no orderly end.
func TestLink(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	l := newLink(t, map[string]string{at: echo.Addr().String()})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	says := func(c net.Conn, within time.Duration) error {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := io.ReadFull(c, make([]byte, 4))
		return err
	}
	tell := func(c net.Conn) { _, _ = c.Write([]byte("ping")) }

	old := dial()
	if tell(old); says(old, 10*time.Second) != nil {
		t.Fatal("nothing comes through")
	}
	l.set(weather{cut: true})
	fresh := dial()
	for _, c := range []net.Conn{old, fresh} {
		if tell(c); !errors.Is(says(c, 50*time.Millisecond), os.ErrDeadlineExceeded) {
			t.Error("something comes through a link that is cut")
		}
	}
	l.set(weather{latency: 100 * time.Millisecond})
	for _, c := range []net.Conn{old, fresh} {
		if err := says(c, 10*time.Second); err != nil {
			t.Errorf("what was written before the heal: %v", err)
		}
	}
	began := time.Now()
	if tell(old); says(old, 10*time.Second) != nil || time.Since(began) < 200*time.Millisecond {
		t.Errorf("there and back in %s, want the latency twice", time.Since(began))
	}
	l.reset()
	if err := says(old, 10*time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
}
