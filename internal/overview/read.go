package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// What is read of a topic in all, one by one; beyond it offsets are counted. An event of 1 KB makes these 50, 200 and 100 MB at most.
var (
	eventsBudget   = budget{records: 50_000, bytes: 128 << 20}
	retriesBudget  = budget{records: 200_000, bytes: 256 << 20}
	deadBudget     = budget{records: 100_000, bytes: 256 << 20}
	commandsBudget = budget{records: 50_000, bytes: 64 << 20}
)

const (
	// atOnce numbers are looked at at the same time.
	atOnce = 8
	// listed is how many webhooks a list names; all are counted.
	listed = 1_000
)

var errLeftOut = errors.New("the broker's answer leaves the partition out")

// Options say where to look.
type Options struct {
	// Client must not be a member of a group.
	Client   *kgo.Client
	Topology *topology.Topology
	// Group is dispatcher.group.
	Group string
	// Progress is told how many numbers have been looked at; may be nil. It is called by one goroutine at a time.
	Progress func(done, all int)
}

// reader is one look.
type reader struct {
	Options
	topo    *topology.Topology
	admin   *kadm.Client
	now     time.Time
	retries []string // configured, then drained
	topics  []string // of which the group commits offsets

	group     group
	committed map[place]commit
	ends      map[place]bounds
}

// Read looks at everything. The topics must be there: see [topology.Verify].
func Read(ctx context.Context, options Options) (*Overview, error) {
	r, err := look(ctx, options)
	if err != nil {
		return nil, err
	}
	views := make([]*view, r.topo.Partitions())
	if err := r.each(ctx, func(ctx context.Context, number int32) (err error) {
		views[number], err = r.number(ctx, number)
		return err
	}); err != nil {
		return nil, err
	}
	o := r.sum(views)
	if err := r.dead(ctx, o); err != nil {
		return nil, err
	}
	o.judge()
	return o, nil
}

// Tiers looks at the delay topics only.
func Tiers(ctx context.Context, options Options) ([]Tier, error) {
	r, err := look(ctx, options)
	if err != nil {
		return nil, err
	}
	views := make([][]Tier, r.topo.Partitions())
	if err := r.each(ctx, func(ctx context.Context, number int32) error {
		for _, topic := range r.retries {
			t, err := r.tier(ctx, place{topic, number})
			if err != nil {
				return err
			}
			views[number] = append(views[number], t)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	sum := r.emptyTiers()
	for _, tiers := range views {
		mergeTiers(sum, tiers)
	}
	return sum, nil
}

// look reads what all the rest is measured against.
func look(ctx context.Context, options Options) (*reader, error) {
	r := &reader{Options: options, topo: options.Topology, admin: kadm.NewClient(options.Client)}
	drained, err := topology.Drained(ctx, r.admin, r.topo)
	if err != nil {
		return nil, err
	}
	r.retries = append(r.topo.Retries(), drained...)
	r.topics = append(r.topo.Owned(), drained...)
	if r.group, err = r.settled(ctx); err != nil {
		return nil, err
	}
	if r.committed, err = r.commits(ctx); err != nil {
		return nil, err
	}
	r.ends, err = r.bounds(ctx, append(slices.Clone(r.topics), r.topo.State(), r.topo.Endpoints(), r.topo.DLQ()))
	r.now = time.Now() // as late as possible: what was written until now is not in the future
	return r, err
}

// each looks at all numbers, some at once.
func (r *reader) each(ctx context.Context, fn func(context.Context, int32) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	free := make(chan struct{}, atOnce)
	for number := range r.topo.Partitions() {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := fn(ctx, number); err != nil {
				cancel(err) // the first is the cause; the others follow from it
				return
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if r.Progress != nil {
				r.Progress(done, int(r.topo.Partitions()))
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (r *reader) emptyTiers() []Tier {
	tiers := make([]Tier, len(r.retries))
	for i, topic := range r.retries {
		tiers[i] = r.emptyTier(topic)
	}
	return tiers
}

func mergeTiers(sum, of []Tier) {
	for i := range sum {
		sum[i].merge(of[i])
	}
}

// sum puts the numbers together.
func (r *reader) sum(views []*view) *Overview {
	o := &Overview{
		At: record.At(r.now), Group: r.Group, GroupState: r.group.state, Partitions: r.topo.Partitions(), OwnedNumbers: len(r.group.owners),
		Dispatchers: r.group.members, RetryTiers: r.emptyTiers(),
		Numbers: []Number{}, Paused: []Paused{}, Returning: []Returning{}, Holds: []Hold{}, Notes: []string{},
		moving: r.group.moving(),
	}
	holds := map[[2]string]Hold{}
	notes := map[note]int{}
	for _, v := range views {
		o.Numbers = append(o.Numbers, v.Number)
		o.Backlog += v.Backlog
		o.BacklogIsBound = o.BacklogIsBound || v.BacklogIsBound
		mergeTiers(o.RetryTiers, v.tiers)
		o.Webhooks += v.webhooks
		o.WebhooksPaused += len(v.paused)
		o.WebhooksReturning += len(v.returning)
		o.ParkedEvents += v.parked
		o.Paused = append(o.Paused, v.paused...)
		o.Returning = append(o.Returning, v.returning...)
		o.Problems = append(o.Problems, v.problems...)
		for _, h := range v.holds {
			key := [2]string{string(h.Scope), h.Value}
			if before, ok := holds[key]; ok {
				h.Numbers += before.Numbers
				h.Parked += before.Parked
			}
			holds[key] = h
		}
		for _, n := range v.notes {
			notes[n]++
		}
		if len(v.expired) > 0 {
			o.expired = append(o.expired, v.Number.Number)
		}
	}
	o.Holds = slices.AppendSeq(o.Holds, maps.Values(holds))
	slices.SortFunc(o.Holds, func(a, b Hold) int { return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.Value, b.Value)) })
	o.holdsOverall(r.topo.Partitions())
	// The newest pause first: it is the news. Of what returns, the most first.
	slices.SortFunc(o.Paused, func(a, b Paused) int {
		return cmp.Or(b.PausedAt.Compare(a.PausedAt.Time), cmp.Compare(a.Webhook, b.Webhook))
	})
	o.unusable()
	slices.SortFunc(o.Returning, func(a, b Returning) int {
		return cmp.Or(cmp.Compare(b.Parked, a.Parked), cmp.Compare(a.Webhook, b.Webhook))
	})
	o.Paused, o.Returning = o.Paused[:min(listed, len(o.Paused))], o.Returning[:min(listed, len(o.Returning))]
	r.takeNotes(o, notes)
	return o
}

// takeNotes names each bound that was hit.
func (r *reader) takeNotes(o *Overview, notes map[note]int) {
	for n, numbers := range notes {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: %s (in %d of %d numbers)", n.topic, n.text, numbers, o.Partitions))
	}
	slices.Sort(o.Notes)
	if o.BacklogIsBound {
		limit := share(eventsBudget, int(o.Partitions))
		o.Notes = append(o.Notes, fmt.Sprintf("%s: more than %d records or %d MiB wait in a number, or lie behind an open transaction; they are counted from offsets, an upper bound", r.topo.Events(), limit.records, limit.bytes>>20))
	}
	for _, t := range o.RetryTiers {
		if t.WaitingIsBound {
			limit := share(retriesBudget, len(r.retries)*int(o.Partitions))
			o.Notes = append(o.Notes, fmt.Sprintf("%s: more than %d records or %d MiB wait in a number; the rest is counted from offsets, an upper bound, and not looked at for due times", t.Topic, limit.records, limit.bytes>>20))
		}
	}
	if o.WebhooksPaused > len(o.Paused) || o.WebhooksReturning > len(o.Returning) {
		o.Notes = append(o.Notes, fmt.Sprintf("at most %d webhooks are listed: %d are paused, %d return", listed, o.WebhooksPaused, o.WebhooksReturning))
	}
}
