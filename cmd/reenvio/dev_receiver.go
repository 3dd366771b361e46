package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// receiver is the sample endpoint of `reenvio dev`. Its answer depends on the path and the attempt alone, so that it behaves the same
// after a restart.
type receiver struct {
	server   *http.Server
	listener net.Listener
	served   chan struct{}

	mu  sync.Mutex
	got []received // the last, newest first
}

// received is a request as the page of `reenvio dev` shows it.
type received struct {
	At      time.Time
	Webhook string
	EventID string
	Attempt int
	Status  int
	Body    string // its beginning
}

// shownBody is how much of a body is shown, in bytes.
const shownBody = 160

// flakyFailures is how often demo-flaky refuses each event.
const flakyFailures = 2

func startReceiver(port int) (*receiver, error) {
	listener, err := listenLoopback(port, "the sample receiver", "--receiver-port")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	r := &receiver{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener, served: make(chan struct{})}
	mux.HandleFunc("POST /"+demoOK, r.answerWith(demoOK, func(int) int { return http.StatusOK }))
	mux.HandleFunc("POST /"+demoDown, r.answerWith(demoDown, func(int) int { return http.StatusInternalServerError }))
	mux.HandleFunc("POST /"+demoFlaky, r.answerWith(demoFlaky, func(attempt int) int {
		if attempt <= flakyFailures {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}))
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // returns when stop is called; what else could end it shows as failed deliveries
	}()
	return r, nil
}

func (r *receiver) answerWith(webhook string, status func(attempt int) int) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(req.Body, shownBody))
		// A body that is read keeps the connection for the next request.
		_, _ = io.Copy(io.Discard, req.Body)
		attempt, _ := strconv.Atoi(req.Header.Get("X-Webhook-Delivery-Attempt"))
		answer := status(attempt)
		r.note(received{At: time.Now(), Webhook: webhook, EventID: req.Header.Get("X-Webhook-Event-Id"), Attempt: attempt, Status: answer, Body: clean(string(body))})
		w.WriteHeader(answer)
	}
}

func (r *receiver) note(got received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = newest(r.got, got)
}

func (r *receiver) last() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) port() int { return r.listener.Addr().(*net.TCPAddr).Port }

func (r *receiver) url(path string) string {
	return "http://" + r.listener.Addr().String() + "/" + path
}

func (r *receiver) stop(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, r.server.Close())
	}
	<-r.served
	return err
}

// listenLoopback listens on a port of 127.0.0.1, 0 for any free one. An occupied port is told with the flag that chooses another.
func listenLoopback(port int, what, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the port %d of %s is in use, perhaps by another `reenvio dev`: stop that, or choose another with %s (0 is any free one)", port, what, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", what, err)
	}
	return listener, nil
}
