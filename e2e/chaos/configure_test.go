package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// changedOrders are the orderings that the webhooks "changed-0", "changed-1", ... have
// in turn. Of the second and the third there is an order that all of theirs keep.
var changedOrders = [][]record.Ordering{
	{record.OrderNone, record.OrderKey, record.OrderFirstAttempt, record.OrderStrict, record.OrderStrictKey},
	{record.OrderFirstAttempt, record.OrderStrict},
	{record.OrderKey, record.OrderStrictKey},
}

// learning is how long an owner may still go by a configuration that was changed: it
// hears of the new one within a second, but its link may be slow.
const learning = 30 * time.Second

// configure changes what the next attempt must use, each of the things in turn.
func (w *world) configure(ctx context.Context, id string, rnd *rand.Rand) {
	var which int
	_, _ = fmt.Sscanf(id, "changed-%d", &which)
	orders := changedOrders[which]
	changes := []struct {
		what deed
		draw func() func(*record.Endpoint) // it may have to be made several times
	}{
		{urlMoved, func() func(*record.Endpoint) {
			path := rnd.IntN(paths)
			return func(e *record.Endpoint) { e.URL = w.Receiver.URL(onPath(id, path)) }
		}},
		{secretRotated, func() func(*record.Endpoint) {
			fresh := record.Secret{Value: signing.NewSecret(), CreatedAt: record.At(time.Now())}
			return func(e *record.Endpoint) { // the last is what the receiver knows
				if last := len(e.Secrets) - 1; last > 0 {
					e.Secrets = e.Secrets[last:]
				} else {
					e.Secrets = append([]record.Secret{fresh}, e.Secrets...)
				}
			}
		}},
		{timeoutChanged, func() func(*record.Endpoint) {
			timeout := record.Duration(between(rnd, 5*time.Second, 30*time.Second))
			return func(e *record.Endpoint) { e.Timeout = timeout }
		}},
		{attemptsChanged, func() func(*record.Endpoint) {
			n := 2 + rnd.IntN(4)
			return func(e *record.Endpoint) { e.MaxAttempts = n }
		}},
		{orderChanged, func() func(*record.Endpoint) {
			o, n := orders[rnd.IntN(len(orders))], 2+rnd.IntN(4)
			return func(e *record.Endpoint) {
				e.Ordering, e.MaxInFlight = o, 0
				if several(o) {
					e.MaxInFlight = n
				}
			}
		}},
		{rateChanged, func() func(*record.Endpoint) {
			rate := float64(rnd.IntN(3) * 5)
			return func(e *record.Endpoint) { e.RateLimit = rate }
		}},
		{inFlightChanged, func() func(*record.Endpoint) {
			n := 2 + rnd.IntN(4)
			return func(e *record.Endpoint) {
				if several(e.Ordering) {
					e.MaxInFlight = n
				}
			}
		}},
		{headerChanged, func() func(*record.Endpoint) {
			value := fmt.Sprint(rnd.Int())
			return func(e *record.Endpoint) { e.Headers = map[string]string{"X-Changed": value} }
		}},
	}
	for turn := []int(nil); sleep(ctx, between(rnd, 300*time.Millisecond, 3*time.Second)); turn = turn[1:] {
		if len(turn) == 0 {
			turn = rnd.Perm(len(changes))
		}
		c := changes[turn[0]]
		w.change(id, c.what, c.draw())
	}
}

func several(o record.Ordering) bool {
	return o == record.OrderNone || o == record.OrderKey || o == record.OrderStrictKey
}

func (w *world) change(id string, what deed, change func(*record.Endpoint)) {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	m := move{asked: time.Now()}
	before, after, err := w.Control.ChangeEndpoint(ctx, id, func(e *record.Endpoint) error {
		change(e)
		return nil
	})
	if err == nil {
		m.done = time.Now()
	}
	if after.URL != before.URL {
		m.to = strings.TrimPrefix(after.URL, w.Receiver.URL(""))
		w.mu.Lock()
		w.moves[id] = append(w.moves[id], m)
		w.mu.Unlock()
	}
	if err == nil && string(before.Marshal()) != string(after.Marshal()) {
		w.did(what)
	}
}

// paths are how many a webhook has at the receiver; the first is its own name.
const paths = 4

func onPath(id string, path int) string {
	if path == 0 {
		return id
	}
	return fmt.Sprintf("%s/%d", id, path)
}

// move is a change of a webhook's URL.
type move struct {
	to          string
	asked, done time.Time // done is zero when nobody knows whether it was
}

// checkPaths: requests go to the URL of the configuration that their owner goes by. What
// a dispatcher sends that was stopped is as old as the stop.
func (w *world) checkPaths(requests []kafkatest.Request) {
	for _, q := range requests {
		id, _, _ := strings.Cut(q.Webhook, "/")
		if moves := w.moves[id]; moves != nil && !wasAt(moves, id, q.Webhook, q.Start) && !w.wasStopped(q.Start) {
			w.T.Errorf("a request of %s came to its path %q at %s, and its URL was another one: %+v", id, q.Webhook, clock(q.Start), moves)
		}
	}
}

// wasAt: whether a webhook's URL may have had a path at a time.
func wasAt(moves []move, id, path string, at time.Time) bool {
	for i := -1; i < len(moves); i++ {
		is, since := id, time.Time{}
		if i >= 0 {
			is, since = moves[i].to, moves[i].asked
		}
		if is != path || at.Before(since) {
			continue
		}
		until := at
		for _, next := range moves[i+1:] {
			if !next.done.IsZero() {
				until = next.done.Add(learning)
				break
			}
		}
		if !at.After(until) {
			return true
		}
	}
	return false
}

func (w *world) wasStopped(at time.Time) bool {
	for _, d := range w.done {
		if d.kind == stopped && at.After(d.from) && at.Before(d.to.Add(effect)) {
			return true
		}
	}
	return false
}

// received are the requests as those of their webhooks, whatever the path.
func received(requests []kafkatest.Request) []history.Request {
	all := history.Received(requests)
	for i := range all {
		all[i].Webhook, _, _ = strings.Cut(all[i].Webhook, "/")
	}
	return all
}

// delete takes the webhook away, with whatever it has waiting; every other one is made
// again, again and again.
func (w *world) delete(ctx context.Context, id string, rnd *rand.Rand) {
	var which int
	_, _ = fmt.Sscanf(id, "deleted-%d", &which)
	for sleep(ctx, between(rnd, 8*time.Second, 30*time.Second)) {
		for w.remove(id) != nil && sleep(ctx, time.Second) {
		}
		if which%2 == 0 {
			return
		}
		for sleep(ctx, between(rnd, time.Second, 8*time.Second)) && w.makeAgain(id) != nil {
		}
	}
}

func (w *world) remove(id string) error {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	_, etag, err := w.Control.GetEndpoint(ctx, id)
	if err == nil {
		err = w.Control.DeleteEndpoint(ctx, id, etag)
	}
	if err == nil || errors.Is(err, control.ErrDeleted) {
		w.did(deleted)
		return nil
	}
	return err
}

func (w *world) makeAgain(id string) error {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	_, err := w.Control.WriteEndpoint(ctx, w.clear[id], control.Absent)
	if err == nil || errors.Is(err, control.ErrConflict) { // it is there, by a try that nobody heard of
		w.did(madeAgain)
		return nil
	}
	return err
}
