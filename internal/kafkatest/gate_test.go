package kafkatest_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestGate(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	g := kafkatest.NewGate(nil)
	dial := func() (net.Conn, error) { return g.Dial(t.Context(), "tcp", ln.Addr().String()) }
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	g.Shut()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("through a shut gate: %v", err)
	}
	if _, err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling through a shut gate: %v", err)
	}
	g.Open()
	if c, err = dial(); err != nil {
		t.Fatalf("dialling through an open one: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
