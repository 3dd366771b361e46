package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"time"
)

// receiver is the webhooks' endpoint: the last part of the path is the webhook.
type receiver struct {
	listener net.Listener
	server   *http.Server
	closing  context.Context
	cancel   context.CancelFunc
}

// newReceiver answers each request with what answer returns, after it has returned.
// Its context ends when the receiver is closed.
func newReceiver(answer func(ctx context.Context, webhook, event string) int) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the receiver: %w", err)
	}
	r := &receiver{listener: l}
	r.closing, r.cancel = context.WithCancel(context.Background())
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		ctx, cancel := context.WithCancel(request.Context())
		defer context.AfterFunc(r.closing, cancel)()
		defer cancel()
		w.WriteHeader(answer(ctx, path.Base(request.URL.Path), request.Header.Get("webhook-id")))
	})}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) url(webhook string) string {
	return "http://" + r.listener.Addr().String() + "/" + webhook
}

func (r *receiver) close() error {
	r.cancel()
	return r.server.Close()
}

// until waits for a time.
func until(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusing is a URL at which nobody listens.
func refusing() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a port that refuses connections: %w", err)
	}
	return "http://" + l.Addr().String() + "/", l.Close()
}

// firstError is the first that says something of its own: one that a stop has
// caused in others says less.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}
