package bench

import (
	"context"
	"fmt"
	"time"
)

// IsolationOptions are the size of the isolation benchmark.
type IsolationOptions struct {
	Bad       []string // names of Badnesses; empty: all
	Webhooks  int      // of all kinds
	Disturbed int      // of them, the last, are bad in the disturbed phases
	Flood     int      // events that one webhook has queued, for the badness of that name
	Share     float64  // of the machine's capacity, that the load takes
	Rounds    int      // how often each badness has its turn
	Warm      time.Duration
	Measure   time.Duration // of each phase, after Warm
	Grace     time.Duration // for what was sent at the end of a phase
	Patience  time.Duration // for a dispatcher to begin
	Progress  func(format string, args ...any)
}

// IsolationDefaults are those of the promise.
func IsolationDefaults() IsolationOptions {
	return IsolationOptions{
		Webhooks: 100, Disturbed: 10, Flood: 200_000, Share: 0.6, Rounds: 5,
		Warm: 2 * time.Second, Measure: 5 * time.Second, Grace: 5 * time.Second, Patience: 2 * time.Minute,
	}
}

// What the webhooks that are well must keep of what they have undisturbed.
const (
	KeepsRate = 0.95
	KeepsP99  = 1.5
)

// Validate refuses a way to be bad that there is not.
func (o *IsolationOptions) Validate() error {
	_, err := named(o.Bad)
	return err
}

// Isolation measures what webhooks that are well notice of those that are not.
//
// Disturbed and undisturbed phases take turns, with the same load, and what is compared
// are their medians: a machine that has other work, or grows warm, changes from minute
// to minute. So does its capacity, which is measured anew in each round.
func Isolation(ctx context.Context, o IsolationOptions) (rows []Row, err error) {
	bad, err := named(o.Bad)
	if err != nil {
		return nil, err
	}
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = firstError(err, w.close()) }()
	m, err := o.rounds(ctx, w, bad)
	if err != nil {
		return nil, err
	}
	capacity := median(m.capacity)
	rows = append(rows, Row{
		Name: "capacity", About: fmt.Sprintf("%d webhooks, all well, as fast as it goes; the load of the other rows is %.0f %% of it", o.Webhooks, o.Share*100),
		Figures: []Figure{{Name: "capacity", Value: capacity, Unit: "events/s"}, {Name: "load", Value: capacity * o.Share, Unit: "events/s"}},
	}.judged())
	for i, b := range bad {
		rows = append(rows, o.row(b, m.disturbed[i], m.undisturbed))
	}
	return rows, nil
}

// measured is what the rounds have seen.
type measured struct {
	capacity    []float64
	disturbed   [][]sample // of each badness
	undisturbed []sample
}

// rounds measures in each round what the machine can do now, then each badness and
// after it the undisturbed at a share of that.
func (o *IsolationOptions) rounds(ctx context.Context, w *world, bad []badness) (*measured, error) {
	m := &measured{disturbed: make([][]sample, len(bad))}
	for round := range o.Rounds {
		tell := func(name, format string, args ...any) {
			o.Progress("round %d of %d, %s: %s", round+1, o.Rounds, name, fmt.Sprintf(format, args...))
		}
		capacity, err := o.capacity(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("capacity: %w", err)
		}
		m.capacity = append(m.capacity, capacity)
		tell("capacity", "%.0f events/s", capacity)
		for i, b := range bad {
			disturbed, err := o.phase(ctx, w, b, capacity*o.Share)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.name, err)
			}
			tell(b.name, "%s", disturbed)
			undisturbed, err := o.phase(ctx, w, healthy, capacity*o.Share)
			if err != nil {
				return nil, fmt.Errorf("undisturbed: %w", err)
			}
			tell("undisturbed", "%s", undisturbed)
			m.disturbed[i], m.undisturbed = append(m.disturbed[i], disturbed), append(m.undisturbed, undisturbed)
		}
	}
	return m, nil
}

func (s sample) String() string {
	return fmt.Sprintf("%.0f of %.0f events/s, p50 %s, p99 %s", s.rate, s.due, s.p50.Round(100*time.Microsecond), s.p99.Round(100*time.Microsecond))
}

// row is the verdict on one badness.
func (o *IsolationOptions) row(b badness, disturbed, undisturbed []sample) Row {
	// The rate is the part of what was due: the load differs from round to round.
	medians := func(of []sample) (rate, p99 float64, missing int) {
		var rates, p99s []float64
		for _, s := range of {
			rates, p99s = append(rates, s.rate/s.due), append(p99s, float64(s.p99)/float64(time.Millisecond))
			missing += s.missing
		}
		return median(rates), median(p99s), missing
	}
	hasRate, hasP99, missing := medians(disturbed)
	hadRate, hadP99, _ := medians(undisturbed)
	good := o.Webhooks - o.Disturbed
	who := fmt.Sprintf("%d of %d webhooks %s", o.Disturbed, o.Webhooks, b.about)
	if b.flood {
		who = fmt.Sprintf("one of %d webhooks has %d events queued", o.Webhooks, o.Flood)
	}
	r := Row{
		Name: b.name, About: fmt.Sprintf("%s; %d others beside them", who, good),
		Figures: []Figure{
			{Name: "rate, of undisturbed", Value: hasRate / hadRate, Bound: atLeast(KeepsRate)},
			{Name: "p99 latency, of undisturbed", Value: hasP99 / hadP99, Bound: atMost(KeepsP99)},
			{Name: "p99 latency", Value: hasP99, Unit: "ms"},
			{Name: "p99 latency undisturbed", Value: hadP99, Unit: "ms"},
			{Name: "events not delivered", Value: float64(missing), Bound: atMost(0)},
		},
	}
	if hadRate < KeepsRate {
		r.Problem = fmt.Sprintf("undisturbed, %.2f of the load came in time: the machine has other work, measure again when it has none", hadRate)
	}
	return r.judged()
}
