package producer

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// grace is how long the end of an event waits for kgo, when its time is over, to
// say that nobody has it: it looks at it at least every second and a half, as long
// as no broker is reached (see retryTimeout).
const grace = 3 * time.Second

// pending is one event on its way. It ends once: by kgo, or by its own time.
type pending struct {
	p    *Producer
	ctx  context.Context
	done func(Published, error)

	once    sync.Once
	release func() // of ctx and of what waits for its end; under p.mu, its time can be over at once
}

// begin notes an event that is on its way from now on.
func (p *Producer) begin(ctx context.Context, published Published, done func(Published, error)) (*pending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.onWay == 0 {
		p.idle = make(chan struct{})
	}
	p.onWay++
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	e := &pending{p: p, ctx: ctx, done: done}
	// kgo holds on to a record that may have reached the broker for as long as it
	// takes to know. Whoever waits for it must not.
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { e.end(published, p.explain(ctx, ctx.Err()), true) })
	})
	e.release = func() { stop(); cancel() }
	return e, nil
}

// end tells what became of the event, when nobody has before.
func (e *pending) end(published Published, err error, maybeWritten bool) {
	e.once.Do(func() {
		e.p.mu.Lock()
		release := e.release
		e.p.mu.Unlock()
		release()
		if err != nil {
			err = &PublishError{ID: published.ID, Webhook: published.Webhook, MaybeWritten: maybeWritten, Err: err}
		}
		e.done(published, err)
		e.p.ended()
	})
}

func (p *Producer) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onWay--; p.onWay == 0 {
		close(p.idle)
	}
}

// Flush returns when no event is on its way, and what PublishAsync was to call has
// been called; or with ctx.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	idle, onWay := p.idle, p.onWay
	p.mu.Unlock()
	if onWay == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("waiting for %d events that are on their way: %w", p.onWay, ctx.Err())
	}
}
