package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/internal/topology"
)

// stage is a dispatcher with its own topics and receiver, for one phase. What one
// phase leaves behind is nothing to the next.
type stage struct {
	o       *IsolationOptions
	w       *world
	topo    *topology.Topology
	to      *receiver
	load    *load
	bad     badness
	unasked chan string // webhooks that have got their first event
	stops   []func() error
}

// errNotReady is that of a phase whose dispatcher did not begin.
var errNotReady = errors.New("the webhooks did not get their first events")

// newStage begins a phase in which the last webhooks are bad in one way. It is ready
// when the others have got an event each.
func (o *IsolationOptions) newStage(ctx context.Context, w *world, bad badness, l *load) (_ *stage, err error) {
	runtime.GC() // each phase begins with the same heap
	s := &stage{o: o, w: w, bad: bad, load: l, unasked: make(chan string, 2*o.Webhooks)}
	defer func() {
		if err != nil {
			err = firstError(err, s.end())
		}
	}()
	var gone func() error
	if s.topo, gone, err = w.topics(ctx); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, gone)
	if s.to, err = newReceiver(s.answer); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.to.close)
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	if err := s.queue(ctx); err != nil {
		return nil, err
	}
	if err := s.dispatch(ctx); err != nil {
		return nil, err
	}
	return s, s.warm(ctx)
}

// end takes everything down, the last first.
func (s *stage) end() (err error) {
	for len(s.stops) > 0 {
		last := len(s.stops) - 1
		err = errors.Join(err, s.stops[last]())
		s.stops = s.stops[:last]
	}
	return err
}

// isBad: whether webhook i is disturbed in this phase.
func (s *stage) isBad(i int) bool {
	return s.bad.name != healthy.name && !s.bad.flood && i >= s.o.Webhooks-s.o.Disturbed
}

// flooded is the webhook that has a long queue, where one has.
func (s *stage) flooded() string { return webhookID(s.o.Webhooks - 1) }

func (s *stage) answer(ctx context.Context, webhook, event string) int {
	if n, err := strconv.Atoi(webhook[len(webhook)-3:]); err == nil && s.isBad(n) {
		return s.bad.answer(ctx)
	}
	if event == firstEvent+webhook {
		s.unasked <- webhook
	} else {
		s.load.arrived(event, time.Now())
	}
	return healthy.status
}

const firstEvent = "first-"

func (s *stage) create(ctx context.Context) error {
	refuses, err := refusing()
	if err != nil {
		return err
	}
	i := -1
	return s.w.produce(ctx, func() (*kgo.Record, error) {
		if i++; i == s.o.Webhooks {
			return nil, nil
		}
		url := s.to.url(webhookID(i))
		if s.isBad(i) && s.bad.refuse {
			url = refuses + webhookID(i)
		}
		return endpointRecord(s.topo, s.w.keys, webhookID(i), url)
	}, nil)
}

// queue is what waits when the phase begins: the flood; and of each webhook that is
// slow so much that its lane is full, and is parked, in the middle of what is measured.
func (s *stage) queue(ctx context.Context) error {
	if s.bad.flood {
		return s.enqueue(ctx, s.flooded(), s.o.Flood)
	}
	for i := range s.o.Webhooks {
		if !s.isBad(i) {
			continue
		}
		each := s.load.rate / float64(s.o.Webhooks)
		if err := s.enqueue(ctx, webhookID(i), fullLane-int(each*(s.o.Warm+s.o.Measure/2).Seconds())); err != nil {
			return err
		}
	}
	return nil
}

// fullLane is how many events a dispatcher queues in memory for one webhook.
const fullLane = 1_000

func (s *stage) enqueue(ctx context.Context, webhook string, n int) error {
	i := 0
	return s.w.produce(ctx, func() (*kgo.Record, error) {
		if i++; i > n {
			return nil, nil
		}
		return eventRecord(s.topo, webhook, "queued-"+strconv.Itoa(i))
	}, nil)
}

func (s *stage) dispatch(ctx context.Context) error {
	o := s.w.options(s.topo, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	o.Config.DrainTimeout = 0 // what is in flight at the end of a phase is of no interest
	d, err := dispatcher.New(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	s.stops = append(s.stops, func() error {
		cancel()
		return <-ended
	})
	return nil
}

// warm waits until the webhooks that are well have got an event each. One that shares
// its number with a flood gets it behind the flood.
func (s *stage) warm(ctx context.Context) error {
	want, i := 0, -1
	err := s.w.produce(ctx, func() (*kgo.Record, error) {
		for i++; i < s.o.Webhooks; i++ {
			id := webhookID(i)
			if s.isBad(i) || s.bad.flood && id == s.flooded() {
				continue
			}
			want++
			return eventRecord(s.topo, id, firstEvent+id)
		}
		return nil, nil
	}, nil)
	if err != nil {
		return err
	}
	late := time.NewTimer(s.o.Patience)
	defer late.Stop()
	for got := 0; got < want; got++ {
		select {
		case <-s.unasked:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("%w within %s: %d of %d did", errNotReady, s.o.Patience, got, want)
		}
	}
	return nil
}

// phase runs a load against webhooks of which some are bad, and tells what the others
// saw of it.
func (o *IsolationOptions) phase(ctx context.Context, w *world, bad badness, rate float64) (sample, error) {
	lasts := o.Warm + o.Measure
	l := newLoad(o.Webhooks, o.Disturbed, rate, int(rate*lasts.Seconds()))
	if err := o.run(ctx, w, bad, l); err != nil {
		return sample{}, err
	}
	return l.sample(o.Warm, lasts, time.Since(l.start)), nil
}

// run sends all of a load, and waits until it has come to those that are well.
func (o *IsolationOptions) run(ctx context.Context, w *world, bad badness, l *load) (err error) {
	s, err := o.newStage(ctx, w, bad, l)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.end()) }()
	l.start = time.Now()
	sent := 0
	err = w.produce(ctx, func() (*kgo.Record, error) {
		if sent == len(l.cameAt) {
			return nil, nil
		}
		if err := until(ctx, l.start.Add(l.due(sent))); err != nil {
			return nil, err
		}
		sent++
		return eventRecord(s.topo, l.webhook(sent-1), strconv.Itoa(sent-1))
	}, nil)
	for late := time.Now().Add(o.Grace); err == nil && l.waiting() > 0 && time.Now().Before(late); {
		err = until(ctx, time.Now().Add(20*time.Millisecond))
	}
	return err
}

// capacity is how many events per second the machine delivers when all webhooks are
// well and enough events wait.
func (o *IsolationOptions) capacity(ctx context.Context, w *world) (perSecond float64, err error) {
	l := newLoad(o.Webhooks, 0, 1, 1<<22)
	s, err := o.newStage(ctx, w, healthy, l)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstError(err, s.end()) }()
	l.start = time.Now()
	var before int64
	sent, warm := 0, l.start.Add(o.Warm)
	end := warm.Add(o.Measure)
	var since time.Time
	err = w.produce(ctx, func() (*kgo.Record, error) {
		for sent-int(l.came.Load()) >= o.Webhooks*waitingEach {
			if err := until(ctx, time.Now().Add(time.Millisecond)); err != nil {
				return nil, err
			}
			if time.Now().After(end) {
				return nil, nil
			}
		}
		switch now := time.Now(); {
		case sent == len(l.cameAt) || now.After(end):
			return nil, nil
		case since.IsZero() && now.After(warm):
			since, before = now, l.came.Load()
		}
		sent++
		return eventRecord(s.topo, l.webhook(sent-1), strconv.Itoa(sent-1))
	}, nil)
	if err != nil {
		return 0, err
	}
	return float64(l.came.Load()-before) / time.Since(since).Seconds(), nil
}

// waitingEach is how many events wait for each webhook while the capacity is measured:
// far fewer than would be parked.
const waitingEach = 20
