package overview

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// states are what the owner of a number has written down of it.
type states struct {
	webhooks   map[string]record.State
	number     record.NumberState
	unreadable map[string]record.Source // by key
}

func (r *reader) states(ctx context.Context, number int32) (states, error) {
	at := place{r.topo.State(), number}
	s := states{webhooks: map[string]record.State{}, unreadable: map[string]record.Source{}}
	b := r.ends[at]
	_, err := r.scan(ctx, at, []stretch{{b.start, b.stable}}, whole, func(rec *kgo.Record) { s.put(rec) })
	if err != nil {
		return s, fmt.Errorf("reading the states of number %d: %w", number, err)
	}
	return s, nil
}

func (s *states) put(rec *kgo.Record) {
	key := string(rec.Key)
	delete(s.webhooks, key)
	delete(s.unreadable, key)
	if key == record.NumberKey {
		s.number = record.NumberState{}
	}
	if rec.Value == nil {
		return
	}
	var err error
	if key == record.NumberKey {
		s.number, err = record.ParseNumberState(rec.Value)
	} else {
		var state record.State
		if state, err = record.ParseState(rec.Value); err == nil {
			s.webhooks[key] = state
		}
	}
	if err != nil {
		s.unreadable[key] = record.SourceOf(rec)
	}
}

// facts are what the configuration of a webhook has to say here.
type facts struct {
	tenant, urlHost string
	ordering        record.Ordering
}

// endpoints counts the webhooks of a number, and returns the facts of those that are of interest: all of them would be a lot to hold.
func (r *reader) endpoints(ctx context.Context, number int32, interest map[string]bool) (count int, found map[string]facts, err error) {
	at := place{r.topo.Endpoints(), number}
	b := r.ends[at]
	ids := map[string]struct{}{}
	found = map[string]facts{}
	_, err = r.scan(ctx, at, []stretch{{b.start, b.stable}}, whole, func(rec *kgo.Record) {
		id := string(rec.Key)
		delete(ids, id)
		delete(found, id)
		if rec.Value == nil {
			return
		}
		ids[id] = struct{}{}
		if e, err := record.ParseEndpoint(rec.Value); interest[id] && err == nil {
			found[id] = facts{e.Tenant, e.URLHost, e.OrderingOr()}
		}
	})
	if err != nil {
		return 0, nil, fmt.Errorf("reading the webhooks of number %d: %w", number, err)
	}
	return len(ids), found, nil
}
