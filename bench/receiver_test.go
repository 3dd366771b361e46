package bench_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// receiver answers 200 and counts, and does nothing else: the two sides that are
// compared share it, so what it costs pulls their ratio towards 1.
type receiver struct {
	base  string
	meter atomic.Pointer[meter]
}

func newReceiver(b *testing.B, c *kafkatest.Cluster) *receiver {
	b.Helper()
	l := c.Listen(b)
	r := &receiver{base: "http://" + l.Addr().String() + "/"}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return r
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	r.meter.Load().tick()
}

// expect begins a measurement of n requests.
func (r *receiver) expect(n int) *meter {
	m := &meter{want: int64(n), done: make(chan struct{}), progress: make(chan struct{}, 1)}
	r.meter.Store(m)
	return m
}

// meter measures from the first request to the last, so that neither the start
// of a consumer nor the joining of a group counts.
type meter struct {
	want  int64
	seen  atomic.Int64
	first atomic.Int64 // unix ns
	took  time.Duration
	done  chan struct{}

	progress chan struct{} // every so many requests
}

func (m *meter) tick() {
	n := m.seen.Add(1)
	if n%batch == 0 {
		select {
		case m.progress <- struct{}{}:
		default:
		}
	}
	switch n {
	case 1:
		m.first.Store(time.Now().UnixNano())
	case m.want:
		m.took = time.Since(time.Unix(0, m.first.Load()))
		close(m.done)
	}
}

// rate waits for the last request and returns the requests per second.
func (m *meter) rate(b *testing.B, limit time.Duration) float64 {
	b.Helper()
	select {
	case <-m.done:
		return float64(m.want-1) / m.took.Seconds()
	case <-time.After(limit):
		b.Fatalf("%d of %d requests within %s", m.seen.Load(), m.want, limit)
		return 0
	}
}
