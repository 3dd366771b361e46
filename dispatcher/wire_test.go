package dispatcher

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire is a process's way to the brokers, on which single requests get lost
// together with their connection. kfake's faults answer instead of the broker; they
// can't lose the answer to what the broker has done.
type wire struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	losses []*loss
}

// loss is what happens to requests of one kind.
type loss struct {
	key   kmsg.Key
	done  bool // the broker gets the request, and its answer is lost
	times int  // how many more; below 0: all
	hits  int
}

// wired gives a process a wire of its own.
func wired(w *wire) func(*Options) {
	return func(o *Options) {
		w.dial, o.Kafka.Dial = o.Kafka.Dial, w.connect
	}
}

// loseRequests lets requests vanish before they reach the broker.
func (w *wire) loseRequests(key kmsg.Key, times int) *loss {
	return w.lose(&loss{key: key, times: times})
}

// loseAnswers lets requests reach the broker, and their answers vanish.
func (w *wire) loseAnswers(key kmsg.Key, times int) *loss {
	return w.lose(&loss{key: key, done: true, times: times})
}

func (w *wire) lose(l *loss) *loss {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses = append(w.losses, l)
	return l
}

// heal ends all losses.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses = nil
}

func (w *wire) hits(l *loss) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.hits
}

// fate is what happens to a request: the first loss of its kind that is not used up.
func (w *wire) fate(key int16) *loss {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.losses {
		if l.key.Int16() == key && l.times != 0 {
			l.times--
			l.hits++
			return l
		}
	}
	return nil
}

func (w *wire) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: c, wire: w}, nil
}

type wireConn struct {
	net.Conn
	wire *wire
	mute sync.Mutex
	lost bool // whatever is answered from now on
}

// Write gets one whole request: four bytes of length, then the key of its API.
func (c *wireConn) Write(b []byte) (int, error) {
	if len(b) < 6 {
		return c.Conn.Write(b)
	}
	l := c.wire.fate(int16(binary.BigEndian.Uint16(b[4:])))
	switch {
	case l == nil:
		return c.Conn.Write(b)
	case l.done:
		c.mute.Lock()
		c.lost = true
		c.mute.Unlock()
		return c.Conn.Write(b)
	}
	_ = c.Conn.Close()
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mute.Lock()
	defer c.mute.Unlock()
	if c.lost && n > 0 {
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}
