package kafkatest

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hookPath comes before the webhook id in a receiver's URLs.
const hookPath = "/hook/"

// Receiver is the endpoint of any number of webhooks. It keeps every request,
// in the order of arrival, and answers as its script says.
type Receiver struct {
	base string
	done chan struct{}

	mu       sync.Mutex
	scripts  map[string]Script
	secrets  map[string]*standardwebhooks.Webhook
	requests []*Request
	finished []*Request
	seen     map[eventKey]int
	changed  chan struct{} // closed and replaced when a request ends
}

type eventKey struct{ webhook, event string }

// Request is one request as it arrived, and how it was answered.
type Request struct {
	Webhook string // from the URL's path
	EventID string // X-Webhook-Event-Id
	Attempt int    // X-Webhook-Delivery-Attempt; 0 when it is no number
	// Nth counts the requests of this event to this webhook, from 1, whatever
	// number they carry.
	Nth int
	// Start is when the whole request had arrived; End is when its answer was
	// written, or given up. End is zero meanwhile.
	Start, End time.Time
	Header     http.Header
	Body       []byte
	// Signature is what the official Standard Webhooks verifier says; nil is
	// fine. Requests of webhooks without VerifyWith are not looked at.
	Signature error
	// Status is what was answered, whether the client took it or not; 0 when
	// nothing was: the request is still going on, was reset, or its client left.
	Status int
}

// Receiver starts a receiver on this cluster's network. It stops with the test.
func (c *Cluster) Receiver(t testing.TB, script Script) *Receiver {
	t.Helper()
	return NewReceiver(t, c.Listen(t), script)
}

// NewReceiver starts a receiver on a listener and takes it over.
func NewReceiver(t testing.TB, ln net.Listener, script Script) *Receiver {
	t.Helper()
	r := &Receiver{
		base:    "http://" + ln.Addr().String() + hookPath,
		done:    make(chan struct{}),
		scripts: map[string]Script{"": script},
		secrets: map[string]*standardwebhooks.Webhook{},
		seen:    map[eventKey]int{},
		changed: make(chan struct{}),
	}
	server := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: time.Minute,
		// Clients that leave and connections that are reset are what tests do.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("test receiver stopped: %v", err)
		}
	}()
	t.Cleanup(func() {
		close(r.done)
		_ = server.Close()
		<-served
	})
	return r
}

// URL is the endpoint of a webhook.
func (r *Receiver) URL(webhook string) string { return r.base + webhook }

// Answer gives a webhook a script of its own, from its next request on.
func (r *Receiver) Answer(webhook string, script Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[webhook] = script
}

// VerifyWith has the signatures of a webhook's requests checked with a secret
// (whsec_...) by the official verifier.
func (r *Receiver) VerifyWith(t testing.TB, webhook, secret string) {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatalf("making a verifier: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[webhook] = v
}

// Requests are all requests so far, as they arrived.
func (r *Receiver) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Request, len(r.requests))
	for i, q := range r.requests {
		out[i] = *q
	}
	return out
}

// Of are the requests of one webhook so far.
func (r *Receiver) Of(webhook string) []Request {
	return slices.DeleteFunc(r.Requests(), func(q Request) bool { return q.Webhook != webhook })
}

// Await calls done with every request that has ended, once each and in the
// order of their ends, those before the call too, until it returns true.
func (r *Receiver) Await(ctx context.Context, done func(Request) bool) error {
	for next := 0; ; {
		r.mu.Lock()
		changed := r.changed
		news := make([]Request, 0, len(r.finished)-next)
		for _, q := range r.finished[next:] {
			news = append(news, *q)
		}
		next = len(r.finished)
		r.mu.Unlock()
		if slices.ContainsFunc(news, done) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ServeHTTP takes one request. It is exported for http.Server alone.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return // the client left in the middle: nothing that arrived
	}
	q, script := r.begin(in, body)
	status := r.answer(w, in, script(q))
	r.end(q, status)
}

// begin notes the request and finds its script.
func (r *Receiver) begin(in *http.Request, body []byte) (*Request, Script) {
	q := &Request{
		Webhook: strings.TrimPrefix(in.URL.Path, hookPath),
		EventID: in.Header.Get("X-Webhook-Event-Id"),
		Start:   time.Now(),
		Header:  in.Header.Clone(),
		Body:    body,
	}
	q.Attempt, _ = strconv.Atoi(in.Header.Get("X-Webhook-Delivery-Attempt"))

	r.mu.Lock()
	defer r.mu.Unlock()
	key := eventKey{q.Webhook, q.EventID}
	r.seen[key]++
	q.Nth = r.seen[key]
	if v := r.secrets[q.Webhook]; v != nil {
		q.Signature = v.Verify(body, in.Header)
	}
	r.requests = append(r.requests, q)
	script, own := r.scripts[q.Webhook]
	if !own {
		script = r.scripts[""]
	}
	return q, script
}

func (r *Receiver) end(q *Request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.End, q.Status = time.Now(), status
	r.finished = append(r.finished, q)
	close(r.changed)
	r.changed = make(chan struct{})
}

// answer does what the response says, and returns the status that went out.
func (r *Receiver) answer(w http.ResponseWriter, in *http.Request, a Response) int {
	var after <-chan time.Time
	if !a.Hang {
		timer := time.NewTimer(a.Delay)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
	case <-in.Context().Done():
		return 0
	case <-r.done:
		return 0
	}
	if a.Reset {
		reset(w)
		return 0
	}
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may have had enough of it
	return a.Status
}

// reset ends the connection as a crashed peer does: ECONNRESET, no FIN.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if l, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = conn.Close()
}
