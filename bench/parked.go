package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// ParkedOptions are the size of the parked benchmark.
type ParkedOptions struct {
	Binary   string // a reenvio, whose dispatcher is measured
	Webhooks int    // that are paused
	Each     int    // events parked for each of them
	Return   int    // events parked for the one that is resumed
	Rate     int    // events a second to other webhooks, once the dispatcher is ready
	For      time.Duration
	Progress func(format string, args ...any)
}

// ParkedDefaults are those of the promise.
func ParkedDefaults() ParkedOptions {
	return ParkedOptions{Webhooks: 100_000, Each: 10, Return: 1_000, Rate: 500, For: 15 * time.Second}
}

const (
	returning = "returning"
	mib       = 1 << 20
)

// Parked measures what a great many paused webhooks cost a dispatcher: memory, the
// time to start, and how soon one of them returns when it is resumed.
//
// The dispatcher has a process of its own: the embedded broker, in this one, holds all
// of the events in memory.
func Parked(ctx context.Context, o ParkedOptions) ([]Row, error) {
	return parked(ctx, o, func(w *world, topo *topology.Topology) (subject, error) { return startChild(o.Binary, w, topo) })
}

func parked(ctx context.Context, o ParkedOptions, start func(*world, *topology.Topology) (subject, error)) ([]Row, error) {
	p := &parkedBench{ParkedOptions: o, start: start, row: Row{
		Name: "parked",
		About: fmt.Sprintf("%d paused webhooks with %d parked events each; one more with %d is resumed, while %d others get %d events/s",
			o.Webhooks, o.Each, o.Return, others, o.Rate),
	}}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return []Row{p.row.judged()}, nil
}

type parkedBench struct {
	ParkedOptions
	start func(*world, *topology.Topology) (subject, error)
	row   Row
	w     *world
	topo  *topology.Topology
	to    *receiver
	came  *tally
}

func (p *parkedBench) figure(name string, value float64, unit string, bound *Bound) {
	p.row.Figures = append(p.row.Figures, Figure{Name: name, Value: value, Unit: unit, Bound: bound})
}

func (p *parkedBench) run(ctx context.Context) (err error) {
	if p.w, err = newWorld(); err != nil {
		return err
	}
	defer func() { err = firstError(err, p.w.close()) }()
	p.came = newTally(returning)
	p.to, err = newReceiver(func(_ context.Context, webhook, event string) int {
		p.came.add(webhook, event)
		return http.StatusOK
	})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, p.to.close()) }()
	if p.topo, _, err = p.w.topics(ctx); err != nil {
		return err
	}
	if err := p.fill(ctx); err != nil {
		return err
	}
	p.Progress("starting a dispatcher")
	began := time.Now()
	d, err := p.start(p.w, p.topo)
	if err != nil {
		return err
	}
	peak := d.memory(ctx)
	err = p.measure(ctx, d, began)
	p.figure("most memory of the dispatcher", peak()/mib, "MiB", atMost(256))
	return firstError(err, d.stop())
}

// subject is the dispatcher that is measured.
type subject interface {
	awaitReady(ctx context.Context) error
	// memory watches its resident memory until the returned function is called, which
	// gives the most that was seen, in bytes.
	memory(ctx context.Context) (peak func() float64)
	stop() error
}

func (p *parkedBench) measure(ctx context.Context, d subject, began time.Time) error {
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := d.awaitReady(waiting); err != nil {
		return err
	}
	took := time.Since(began)
	p.figure("from start to ready", took.Seconds(), "s", atMost(10))
	p.Progress("ready after %.1f s; delivering to others, and resuming one", took.Seconds())
	return p.deliver(ctx)
}

// fill writes what a dispatcher finds that ran before: the webhooks, their parked
// events in the order of time, and their states.
func (p *parkedBench) fill(ctx context.Context) error {
	then := time.Now().Add(-6 * time.Hour)
	var ids []string
	for i := range p.Webhooks {
		ids = append(ids, fmt.Sprintf("crm-%06d", i))
	}
	ids = append(ids, returning)
	p.Progress("writing %d webhooks", len(ids))
	all := slices.Clone(ids)
	for i := range others {
		all = append(all, otherID(i))
	}
	at := 0
	err := p.w.produce(ctx, func() (*kgo.Record, error) {
		if at++; at > len(all) {
			return nil, nil
		}
		return endpointRecord(p.topo, p.w.keys, all[at-1], p.to.url(all[at-1]))
	}, nil)
	if err != nil {
		return err
	}
	p.Progress("parking %d events", p.Webhooks*p.Each+p.Return)
	states := make([]record.Parked, len(ids))
	place := map[string]int{}
	for i, id := range ids {
		place[id] = i
	}
	queue := p.schedule(ids)
	number := 0
	err = p.w.produce(ctx, func() (*kgo.Record, error) {
		id, more := queue()
		if !more {
			return nil, nil
		}
		number++
		return parkedRecord(p.topo, id, fmt.Sprintf("evt-%d", number), int64(number), then.Add(time.Duration(number)*time.Millisecond)), nil
	}, func(r *kgo.Record) {
		s := &states[place[string(r.Key)]]
		if s.Count++; s.Count == 1 {
			s.From, s.OldestAt = r.Offset, record.At(then)
		}
		s.Last = r.Offset
	})
	if err != nil {
		return err
	}
	at = 0
	return p.w.produce(ctx, func() (*kgo.Record, error) {
		if at++; at > len(ids) {
			return nil, nil
		}
		return pausedState(p.topo, ids[at-1], states[at-1], then), nil
	}, nil)
}

// schedule spreads the events of each webhook over all of the time.
func (p *parkedBench) schedule(ids []string) func() (string, bool) {
	paused, round, i := ids[:p.Webhooks], 0, 0
	total, number, returned := p.Webhooks*p.Each+p.Return, 0, 0
	return func() (string, bool) {
		if number == total {
			return "", false
		}
		number++
		if returned*total < number*p.Return || round == p.Each {
			returned++
			return returning, true
		}
		id := paused[i]
		if i++; i == len(paused) {
			i, round = 0, round+1
		}
		return id, true
	}
}

const others = 100

func otherID(i int) string { return fmt.Sprintf("other-%03d", i) }

// deliver sends to the others, and resumes the one.
func (p *parkedBench) deliver(ctx context.Context) error {
	end := time.Now().Add(p.For)
	feeding := make(chan error, 1)
	sent := 0
	go func() {
		began := time.Now()
		feeding <- p.w.produce(ctx, func() (*kgo.Record, error) {
			due := began.Add(time.Duration(sent) * time.Second / time.Duration(p.Rate))
			if due.After(end) {
				return nil, nil
			}
			if err := until(ctx, due); err != nil {
				return nil, err
			}
			sent++
			return eventRecord(p.topo, otherID(sent%others), fmt.Sprintf("new-%d", sent))
		}, nil)
	}()
	err := firstError(p.resume(ctx), <-feeding)
	if err != nil {
		return err
	}
	want := sent + p.Return
	p.came.await(30*time.Second, func() bool { return len(p.came.seen) >= want })
	p.came.mu.Lock()
	defer p.came.mu.Unlock()
	p.figure("events delivered", float64(len(p.came.seen)), "", nil)
	p.figure("events missing", float64(want-len(p.came.seen)), "", atMost(0))
	return nil
}

func (p *parkedBench) resume(ctx context.Context) error {
	opts, err := kafka.Options(p.w.kafka(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ctl := control.New(p.w.client, func() []kgo.Opt { return slices.Clip(opts) }, p.topo, nil)
	result, err := ctl.Do(ctx, record.Command{Webhook: returning, Action: record.ActionResume, By: "bench"})
	if err != nil {
		return fmt.Errorf("resuming a webhook: %w", err)
	}
	if result.Result != record.ResultDone {
		return fmt.Errorf("resuming a webhook: %s: %s", result.Result, result.Detail)
	}
	p.came.await(time.Minute, func() bool { return p.came.of >= p.Return })
	p.came.mu.Lock()
	defer p.came.mu.Unlock()
	if p.came.of < p.Return {
		return fmt.Errorf("%d of %d parked events came within a minute of the resume", p.came.of, p.Return)
	}
	p.figure(fmt.Sprintf("from resume to the first of %d parked", p.Return), p.came.first.Sub(began).Seconds(), "s", atMost(2))
	p.figure(fmt.Sprintf("from resume to the last of %d parked", p.Return), p.came.last.Sub(began).Seconds(), "s", nil)
	return nil
}
