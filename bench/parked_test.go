package bench

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/internal/topology"
)

// inProcess is a dispatcher beside the broker: all but its memory can be measured.
type inProcess struct {
	d     *dispatcher.Dispatcher
	stops func() error
}

func (p inProcess) awaitReady(ctx context.Context) error {
	for len(p.d.Ready()) > 0 {
		if err := until(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

func (p inProcess) memory(context.Context) func() float64 { return func() float64 { return mib } }
func (p inProcess) stop() error                           { return p.stops() }

func TestParkedInSmall(t *testing.T) {
	o := ParkedOptions{Webhooks: 50, Each: 4, Return: 20, Rate: 200, For: 300 * time.Millisecond, Progress: func(string, ...any) {}}
	rows, err := parked(t.Context(), o, func(w *world, topo *topology.Topology) (subject, error) {
		d, err := dispatcher.New(w.options(topo, slog.New(slog.DiscardHandler), prometheus.NewRegistry()))
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		return inProcess{d, func() error { cancel(); return <-ended }}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, f := range rows[0].Figures {
		figures[f.Name] = f.Value
	}
	if n := figures["events missing"]; n != 0 {
		t.Errorf("%v events are missing", n)
	}
	if n := figures["events delivered"]; n < 50 || n > 100 { // those of 0.3 s and those that returned
		t.Errorf("%v events were delivered", n)
	}
	if m := figures["most memory of the dispatcher"]; m != 1 {
		t.Errorf("memory %v", m)
	}
}

// Each webhook gets its events, spread over all of the time, and so does the one that returns.
func TestScheduleOfParked(t *testing.T) {
	p := &parkedBench{ParkedOptions: ParkedOptions{Webhooks: 7, Each: 3, Return: 4}}
	next := p.schedule([]string{"a", "b", "c", "d", "e", "f", "g", returning})
	of, order := map[string]int{}, []string{}
	for id, more := next(); more; id, more = next() {
		of[id]++
		order = append(order, id)
	}
	if len(order) != 25 || len(of) != 8 || of[returning] != 4 || of["a"] != 3 || of["g"] != 3 {
		t.Errorf("got %v", of)
	}
	if last := order[len(order)-8:]; last[0] == returning && last[1] == returning {
		t.Errorf("they are not spread: %v", order)
	}
}

// A dispatcher that ends before it is ready says why.
func TestChildThatDoesNotStart(t *testing.T) {
	if _, err := parked(t.Context(), ParkedOptions{Progress: func(string, ...any) {}}, func(*world, *topology.Topology) (subject, error) {
		return nil, errors.New("no such program")
	}); err == nil || err.Error() != "no such program" {
		t.Errorf("got %v", err)
	}
}
