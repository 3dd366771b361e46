package history

import (
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Rules are what a webhook's configuration asks for. The zero value is the
// default policy.
type Rules struct {
	MaxAttempts int // 0 means 5
	// AutoPauseAfter is the streak that pauses; 0 means 10, NeverPause never.
	AutoPauseAfter int
	// Delay is the least and the most between the end of the n-th attempt (from
	// 1) and the due time of the next; nil means 2^n s and 10 % more.
	Delay func(n int) (least, most time.Duration)
	// Tenant and Host are what a hold by hand can concern.
	Tenant, Host string
	// Ordering is what may overtake what; empty means first_attempt.
	Ordering record.Ordering
	// MaxInFlight is for the orderings that allow several requests at once; 0 means
	// their default.
	MaxInFlight int
	// Changes are the configurations that came after the first, in their order.
	Changes []Change
}

// Change is a later configuration of a webhook, as far as it may change in a run.
type Change struct {
	// Written is when its record was written; Seen is when it can be read at the latest.
	Written, Seen time.Time
	Deleted       bool
	MaxAttempts   int
	Ordering      record.Ordering
	MaxInFlight   int
}

// NeverPause as AutoPauseAfter is a webhook that no streak pauses.
const NeverPause = -1

// RulesOf are those of a configuration.
func RulesOf(e record.Endpoint) Rules {
	r := Rules{MaxAttempts: e.MaxAttempts, AutoPauseAfter: e.AutoPauseAfterOr(), Tenant: e.Tenant, Ordering: e.Ordering, MaxInFlight: e.MaxInFlight}
	if r.AutoPauseAfter == 0 {
		r.AutoPauseAfter = NeverPause
	}
	return r
}

func (h *History) rules(webhook string) Rules {
	r, own := h.Rules[webhook]
	if !own {
		r = h.Default
	}
	if r.MaxAttempts == 0 {
		r.MaxAttempts = 5
	}
	if r.AutoPauseAfter == 0 {
		r.AutoPauseAfter = 10
	}
	if r.Delay == nil {
		r.Delay = doubling
	}
	return r
}

func doubling(n int) (least, most time.Duration) {
	d := time.Second << n
	return d, d + d/10
}

// setting is a configuration that an owner may have gone by.
type setting struct {
	record.Endpoint // only what a Change has
	deleted         bool
}

// eachSetting goes through the configurations that an owner may have gone by at some
// time within the one given, until yes is false.
func (h *History) eachSetting(r *Rules, from, to time.Time, yes func(*setting) bool) {
	s := setting{Endpoint: record.Endpoint{MaxAttempts: r.MaxAttempts, Ordering: r.Ordering, MaxInFlight: r.MaxInFlight}}
	for i := 0; ; i++ {
		// It is gone by until the next one has been learned.
		last := i == len(r.Changes)
		if (last || !r.Changes[i].Seen.Add(h.learning()).Before(from)) && !yes(&s) || last {
			return
		}
		c := r.Changes[i]
		if c.Written.After(to.Add(h.Slack)) {
			return
		}
		s = setting{record.Endpoint{MaxAttempts: c.MaxAttempts, Ordering: c.Ordering, MaxInFlight: c.MaxInFlight}, c.Deleted}
	}
}

// always says whether something holds for every configuration that an owner may have
// gone by within a time.
func (h *History) always(r *Rules, from, to time.Time, holds func(*setting) bool) bool {
	all := true
	h.eachSetting(r, from, to, func(s *setting) bool {
		all = holds(s)
		return all
	})
	return all
}

// most is the greatest that a configuration of a moment allows.
func (h *History) most(r *Rules, at time.Time, of func(*setting) int) int {
	most := 0
	h.eachSetting(r, at, at, func(s *setting) bool {
		most = max(most, of(s))
		return true
	})
	return most
}

func (s *setting) strict() bool {
	return !s.deleted && (s.OrderingOr() == record.OrderStrict || s.OrderingOr() == record.OrderStrictKey)
}

func (s *setting) byKey() bool {
	return s.OrderingOr() == record.OrderKey || s.OrderingOr() == record.OrderStrictKey
}

// orders says whether two events are to go out in their order.
func (s *setting) orders(a, b *Event) bool {
	return !s.deleted && s.OrderingOr() != record.OrderNone && (!s.byKey() || a.PartitionKey == b.PartitionKey)
}

// back says whether the webhook was deleted in the run, and made again.
func (r *Rules) back() bool {
	for i, c := range r.Changes {
		if c.Deleted && i+1 < len(r.Changes) {
			return true
		}
	}
	return false
}
