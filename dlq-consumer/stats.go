package dlqconsumer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// maxWebhooks bounds how many webhooks are counted by name, and with it the memory: 100,000 of at most 256 bytes and as much again for
// the counting are 50 MB. Letters of further ones are in Others.
const maxWebhooks = 100_000

// hourly is the longest time that is told hour by hour.
const hourly = 48 * time.Hour

// Tally is a number of letters, and when the first and the last of them died.
type Tally struct {
	Count   int64       `json:"count"`
	FirstAt record.Time `json:"first_at,omitzero"`
	LastAt  record.Time `json:"last_at,omitzero"`
}

func (t *Tally) add(at time.Time) {
	t.Count++
	if t.FirstAt.IsZero() || at.Before(t.FirstAt.Time) {
		t.FirstAt = record.At(at)
	}
	if at.After(t.LastAt.Time) {
		t.LastAt = record.At(at)
	}
}

// Stats are dead letters counted.
type Stats struct {
	// Since and Until are the bounds of the filter.
	Since record.Time `json:"since,omitzero"`
	Until record.Time `json:"until,omitzero"`
	Tally
	// Reasons and Webhooks begin with the one that has most.
	Reasons  []ReasonTally  `json:"reasons"`
	Webhooks []WebhookTally `json:"webhooks"`
	// Others counts letters whose webhook is not listed: there are too many, or it was left out.
	Others int64 `json:"other_webhooks,omitempty"`
	// Per is the length of Times, which are in order; one in which nothing died is left out.
	Per   Period        `json:"per"`
	Times []PeriodTally `json:"times"`
}

// ReasonTally counts the letters of one reason; an empty one is of records that Reenvio has not written.
type ReasonTally struct {
	Reason record.DeathReason `json:"reason"`
	Tally
}

// WebhookTally counts the letters of one webhook; an empty one is of all records whose key is no webhook id.
type WebhookTally struct {
	Webhook string `json:"webhook"`
	Tally
}

// PeriodTally counts the letters of the hour or day that begins At.
type PeriodTally struct {
	At    record.Time `json:"at"`
	Count int64       `json:"count"`
}

// Period is hour or day.
type Period string

// The periods.
const (
	PerHour Period = "hour"
	PerDay  Period = "day"
)

// Stats counts the letters that match. Days are those of the zone.
func (r *Reader) Stats(ctx context.Context, f Filter, zone *time.Location, progress Progress) (Stats, error) {
	if err := f.Validate(); err != nil {
		return Stats{}, err
	}
	c := newCounting(f, zone, time.Now())
	spans, total, err := r.spans(ctx, f)
	if err != nil {
		return Stats{}, fmt.Errorf("counting dead letters: %w", err)
	}
	var before int64
	for _, s := range spans {
		err := r.scan(ctx, s, func(l *record.DeadLetter, written time.Time) error {
			if f.match(l, written) {
				c.add(l, diedAt(l, written))
			}
			return nil
		}, func(next int64) { progress(readingLetters, before+next-s.start, total) })
		if err != nil {
			return Stats{}, fmt.Errorf("counting dead letters: %w", err)
		}
		before += s.end - s.start
	}
	return c.stats(), nil
}

// Top leaves the webhooks that have most.
func (s *Stats) Top(most int) {
	if len(s.Webhooks) <= most {
		return
	}
	for _, w := range s.Webhooks[most:] {
		s.Others += w.Count
	}
	s.Webhooks = s.Webhooks[:most]
}

// counting is Stats in the making.
type counting struct {
	sum      Stats
	zone     *time.Location
	reasons  map[record.DeathReason]*Tally
	webhooks map[string]*Tally
	times    map[time.Time]int64
}

func newCounting(f Filter, zone *time.Location, now time.Time) *counting {
	c := &counting{zone: zone, reasons: map[record.DeathReason]*Tally{}, webhooks: map[string]*Tally{}, times: map[time.Time]int64{}}
	until := now
	if !f.Since.IsZero() {
		c.sum.Since = record.At(f.Since)
	}
	if !f.Until.IsZero() {
		c.sum.Until, until = record.At(f.Until), f.Until
	}
	c.sum.Per = PerDay
	if !f.Since.IsZero() && until.Sub(f.Since) <= hourly {
		c.sum.Per = PerHour
	}
	return c
}

func (c *counting) add(l *record.DeadLetter, died time.Time) {
	c.sum.add(died)
	tallyOf(c.reasons, l.Reason).add(died)
	c.times[c.period(died)]++
	if c.webhooks[l.Webhook] == nil && len(c.webhooks) == maxWebhooks {
		c.sum.Others++
		return
	}
	tallyOf(c.webhooks, l.Webhook).add(died)
}

func tallyOf[K comparable](tallies map[K]*Tally, key K) *Tally {
	if tallies[key] == nil {
		tallies[key] = &Tally{}
	}
	return tallies[key]
}

// period is the beginning of the hour or day. An hour is cut from absolute time, so that the one that a clock repeats in autumn is two.
func (c *counting) period(at time.Time) time.Time {
	if c.sum.Per == PerHour {
		return at.UTC().Truncate(time.Hour)
	}
	year, month, day := at.In(c.zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, c.zone).UTC()
}

func (c *counting) stats() Stats {
	s := c.sum
	s.Reasons, s.Webhooks, s.Times = []ReasonTally{}, []WebhookTally{}, []PeriodTally{}
	for reason, tally := range c.reasons {
		s.Reasons = append(s.Reasons, ReasonTally{reason, *tally})
	}
	for webhook, tally := range c.webhooks {
		s.Webhooks = append(s.Webhooks, WebhookTally{webhook, *tally})
	}
	for at, count := range c.times {
		s.Times = append(s.Times, PeriodTally{record.At(at), count})
	}
	slices.SortFunc(s.Reasons, func(a, b ReasonTally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(s.Webhooks, func(a, b WebhookTally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Webhook, b.Webhook))
	})
	slices.SortFunc(s.Times, func(a, b PeriodTally) int { return a.At.Compare(b.At.Time) })
	return s
}
