package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

const (
	// followPause is how often a person learns how far it is.
	followPause = time.Second
	// rateWindow is how far back the speed of a drain is measured: a slow endpoint answers only every few seconds.
	rateWindow = 30 * time.Second
)

// drainStep is a line of JSON about a webhook's way back from parked.
type drainStep struct {
	Webhook string          `json:"webhook"`
	At      record.Time     `json:"at"`
	Parked  int64           `json:"parked"`
	ETA     record.Duration `json:"eta,omitempty"` // absent: not known, or nothing is left
}

// followResult prints the result of a resume, and then how the parked events go out: in JSON, each in a line.
func (c *cli) followResult(ctx context.Context, s *session, r actResult, out format) error {
	var err error
	if out == formatJSON {
		if err = json.NewEncoder(c.stdout).Encode(r); err == nil {
			err = c.ended(r.Result)
		}
	} else {
		err = c.printResult(r, out)
	}
	if err != nil {
		return err
	}
	return c.followDrain(ctx, s, r.Webhook, out)
}

// followDrain shows how the parked events of a webhook go out, until none is left: that is nil. The drain needs nobody who watches.
func (c *cli) followDrain(ctx context.Context, s *session, id string, out format) error {
	tail, line := s.control(nil).TailState(id), c.progress()
	defer line.end()
	var speed drainSpeed
	left := int64(-1)
	for {
		state, _, err := tail.Read(ctx)
		view := webhookView{Endpoint: record.Endpoint{ID: id}, State: stateOr(state, id)}
		if err == nil && parkedCount(state) == left { // nothing has moved: a hold of more than this webhook may be why
			view, err = s.getWebhook(ctx, id, false)
		}
		if ctx.Err() != nil {
			line.end()
			fmt.Fprintf(c.stderr, "The drain of %s goes on without this command, parked events left: %d. `reenvio webhooks get %[1]s` shows how far it is.\n", id, max(left, 0))
			return errNotDone
		}
		if err != nil {
			return err
		}
		left = parkedCount(view.State)
		step := drainStep{Webhook: id, At: record.At(time.Now()), Parked: left}
		step.ETA = record.Duration(speed.eta(step.At.Time, left))
		if out == formatJSON {
			if err := json.NewEncoder(c.stdout).Encode(step); err != nil {
				return err
			}
		}
		switch {
		case left == 0 && len(view.State.PauseReasons) > 0: // they failed, all of them
			line.end()
			fmt.Fprintf(c.stderr, "No event of %s is parked any more, but it is %s: %s.\n", id, view.statusText(), view.nextStep())
			return errNotDone
		case left == 0:
			line.end()
			fmt.Fprintf(c.stderr, "No event of %s is parked any more.\n", id)
			return nil
		case len(view.State.PauseReasons) > 0 || view.held():
			line.end()
			fmt.Fprintf(c.stderr, "%s is %s, parked events left: %d. Next: %s.\n", id, view.statusText(), left, view.nextStep())
			return errNotDone
		}
		line.show("%s: parked events left: %d%s", id, left, etaText(step.ETA))
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

func etaText(eta record.Duration) string {
	if eta == 0 {
		return ""
	}
	return fmt.Sprintf(", about %s to go", time.Duration(eta))
}

// drainSpeed tells from counts how long it will still take. New events are parked behind the old ones meanwhile, so it is the difference
// of both that counts.
type drainSpeed struct{ seen []drainCount }

type drainCount struct {
	at   time.Time
	left int64
}

// eta is 0 while nothing can be said: at first, and when the events get no fewer.
func (d *drainSpeed) eta(now time.Time, left int64) time.Duration {
	d.seen = append(d.seen, drainCount{now, left})
	for len(d.seen) > 2 && now.Sub(d.seen[0].at) > rateWindow {
		d.seen = d.seen[1:]
	}
	gone, took := d.seen[0].left-left, now.Sub(d.seen[0].at)
	if gone <= 0 || left <= 0 {
		return 0
	}
	return max(time.Second, time.Duration(float64(took)*float64(left)/float64(gone)).Round(time.Second))
}
