package chaos_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// link is what lies between one dispatcher and the brokers: proxies that treat alike
// all that they forward.
type link struct {
	mu    sync.Mutex
	now   weather
	turn  chan struct{} // closed when the weather changes
	conns map[net.Conn]bool
}

// weather is how a link is.
type weather struct {
	cut     bool          // nothing comes through, and nobody is told
	latency time.Duration // each way
	rate    int           // bytes a second, of each connection; 0 is no limit
}

// newLink forwards what comes to each address to its broker, until the test ends.
func newLink(t *testing.T, hops map[string]string) *link {
	t.Helper()
	l := &link{turn: make(chan struct{}), conns: map[net.Conn]bool{}}
	for from, to := range hops {
		ln, err := net.Listen("tcp", from)
		if err != nil {
			t.Fatalf("listening for a proxy: %v", err)
		}
		t.Cleanup(func() {
			_ = ln.Close()
			l.set(weather{})
			l.reset()
		})
		go func() {
			for {
				client, err := ln.Accept()
				if err != nil {
					return
				}
				go l.serve(client, to)
			}
		}()
	}
	return l
}

func (l *link) set(w weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = w
	close(l.turn)
	l.turn = make(chan struct{})
}

// reset breaks every connection, as a firewall does that has forgotten them.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns { // all first: the end of one side is at once that of the other
		noOrderlyEnd(c)
	}
	for c := range l.conns {
		_ = c.Close()
	}
	clear(l.conns)
}

// noOrderlyEnd makes the close of a connection a reset.
func noOrderlyEnd(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

// pass waits while nothing comes through.
func (l *link) pass() weather {
	for {
		l.mu.Lock()
		now, turn := l.now, l.turn
		l.mu.Unlock()
		if !now.cut {
			return now
		}
		<-turn
	}
}

func (l *link) keep(c net.Conn) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
		_ = c.Close()
	}
}

func (l *link) serve(client net.Conn, to string) {
	defer l.keep(client)()
	l.pass()
	broker, err := net.Dial("tcp", to)
	if err != nil {
		noOrderlyEnd(client) // nobody listens there: as near to a refusal as we can come
		return
	}
	defer l.keep(broker)()
	var both sync.WaitGroup
	both.Go(func() { l.forward(client, broker) })
	both.Go(func() { l.forward(broker, client) })
	both.Wait()
}

type piece struct {
	data []byte
	at   time.Time // of its arrival
}

// forward writes what it reads when the weather allows. The end of one side is that
// of the other.
func (l *link) forward(from, to net.Conn) {
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 4<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{buffer[:n], time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	var err error
	for p := range pieces {
		if err != nil {
			continue
		}
		now := l.pass()
		wait := time.Until(p.at.Add(now.latency))
		if now.rate > 0 {
			wait = max(wait, 0) + time.Second*time.Duration(len(p.data))/time.Duration(now.rate)
		}
		if wait > 0 {
			<-time.After(wait)
			l.pass()
		}
		if _, err = to.Write(p.data); err != nil {
			_ = from.Close()
		}
	}
	_ = to.Close()
}
