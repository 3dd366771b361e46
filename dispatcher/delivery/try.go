package delivery

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// stage is how far a request has come: it tells the reader of a timeout what
// the endpoint (or its name server) was slow at.
type stage int32

const (
	stageStart stage = iota
	stageDNS
	stageConnect
	stageTLS
	stageSend
	stageAnswer
)

func (s stage) String() string {
	switch s {
	case stageStart:
		return "waiting for a connection"
	case stageDNS:
		return "resolving the host name"
	case stageConnect:
		return "connecting"
	case stageTLS:
		return "in the TLS handshake"
	case stageSend:
		return "sending the request"
	case stageAnswer:
		return "waiting for the answer"
	}
	return "at an unknown stage"
}

// try follows one request through net/http.
type try struct {
	deadline time.Time
	stage    atomic.Int32
	trace    httptrace.ClientTrace

	// Written by the hooks, in the goroutine of RoundTrip.
	conn      *conn // nil with HTTP/2, and before there is a connection
	before    int64 // what had been written to conn before this request
	connected bool
	http2     bool
	reused    bool
	second    bool
}

type tryKey struct{}

// context is the one to make the request with.
func (t *try) context(ctx context.Context) context.Context {
	t.trace.GotConn = t.gotConn
	t.trace.WroteRequest = t.wroteRequest
	// net/http dials in a context of its own that the end of the request does not
	// end, so that the connection can serve another one. The values are all that
	// arrives there, so the deadline of the dial goes as one: else a dial to a
	// silent address outlives its attempt, and dead endpoints pile up sockets.
	return httptrace.WithClientTrace(context.WithValue(ctx, tryKey{}, t), &t.trace)
}

// withinTry bounds a dial by the deadline of the request that asked for it.
func withinTry(ctx context.Context) (context.Context, context.CancelFunc) {
	if t, ok := ctx.Value(tryKey{}).(*try); ok {
		return context.WithDeadline(ctx, t.deadline)
	}
	return context.WithCancel(ctx)
}

func reached(ctx context.Context, s stage) {
	if t, ok := ctx.Value(tryKey{}).(*try); ok {
		t.stage.Store(int32(s))
	}
}

func (t *try) gotConn(info httptrace.GotConnInfo) {
	t.connected, t.reused, t.http2 = true, info.Reused, false
	t.conn, t.before = nil, 0
	switch c := info.Conn.(type) {
	case *conn:
		t.conn, t.before = c, c.written.Load()
	case *tls.Conn:
		t.http2 = true
	}
	t.stage.Store(int32(stageSend))
}

func (t *try) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err == nil { // it is also called when the deadline cut the writing short
		t.stage.Store(int32(stageAnswer))
	}
}

// nothingSent says that not a byte of the request went out over the connection
// it was given (HTTP/1; of HTTP/2, where requests share one, it can't tell).
func (t *try) nothingSent() bool {
	return t.conn != nil && t.conn.written.Load() == t.before
}

// again starts over for a second connection.
func (t *try) again() {
	t.conn, t.before, t.connected, t.http2, t.reused, t.second = nil, 0, false, false, false, true
	t.stage.Store(int32(stageStart))
}
