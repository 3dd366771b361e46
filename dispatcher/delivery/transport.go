package delivery

import (
	"container/list"
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

const (
	// idleTimeout closes connections that nobody uses. Common servers keep theirs
	// for 60 to 75 s (nginx, AWS load balancers) or 5 s (Node.js): being the first
	// to close saves requests that meet a dying connection.
	idleTimeout = 55 * time.Second
	// pingAfter and pingTimeout find an HTTP/2 connection whose other end is gone
	// within 20 s of the last byte; without them the kernel would need minutes.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
	// maxAnswerHeader bounds what an endpoint can make us hold before the body.
	maxAnswerHeader = 64 << 10
	// answerWindow is how much of a body an HTTP/2 endpoint may send before we
	// read it; net/http's default is 4 MiB a request.
	answerWindow = 64 << 10
	// maxOwnTransports is how many different TLS settings of webhooks keep their
	// connections at a time.
	maxOwnTransports = 256
)

// transports hands out one transport for all webhooks without TLS settings of
// their own, and one for each different set of such settings.
type transports struct {
	dialer      *dialer
	maxInFlight int
	shared      *http.Transport

	mu    sync.Mutex
	own   map[tlsID]*list.Element
	order *list.List // of *ownTransport, last used first
}

type ownTransport struct {
	id        tlsID
	transport *http.Transport
}

func newTransports(d *dialer, maxInFlight int) *transports {
	t := &transports{dialer: d, maxInFlight: maxInFlight, own: map[tlsID]*list.Element{}, order: list.New()}
	t.shared = t.build(&tls.Config{})
	return t
}

// of returns the transport for an endpoint. Requests still running on one that
// is pushed out end as usual; its connections are closed as they become idle.
func (t *transports) of(e *Endpoint) *http.Transport {
	if e.tls == nil {
		return t.shared
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if found, ok := t.own[e.tls.id]; ok {
		t.order.MoveToFront(found)
		return found.Value.(*ownTransport).transport
	}
	made := &ownTransport{e.tls.id, t.build(e.tls.config)}
	t.own[e.tls.id] = t.order.PushFront(made)
	if t.order.Len() > maxOwnTransports {
		oldest := t.order.Remove(t.order.Back()).(*ownTransport)
		delete(t.own, oldest.id)
		oldest.transport.CloseIdleConnections()
	}
	return made.transport
}

func (t *transports) closeIdle() {
	t.shared.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.order.Front(); e != nil; e = e.Next() {
		e.Value.(*ownTransport).transport.CloseIdleConnections()
	}
}

func (t *transports) build(config *tls.Config) *http.Transport {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS12
	config.NextProtos = []string{"h2", "http/1.1"}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		// No Proxy: not even from the environment, which would send requests past
		// the egress rule.
		DialContext:    t.dialer.dial,
		DialTLSContext: t.dialer.dialTLS(config),
		Protocols:      &protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
			MaxReceiveBufferPerStream:     answerWindow,
			MaxReceiveBufferPerConnection: 16 * answerWindow,
		},
		// All that are in flight may be to one host, and each of them leaves an idle
		// connection: a smaller pool would close them and dial again.
		MaxIdleConns:           t.maxInFlight,
		MaxIdleConnsPerHost:    t.maxInFlight,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}
