package dlqconsumer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// RedriveOptions say what to send again.
type RedriveOptions struct {
	Filter Filter
	// Run names the redrive; empty is a new one. A run that was interrupted goes on under its own name: what it has sent is known by it.
	Run string
	// Force overrides the refusals that say so.
	Force bool
}

// Plan is what a redrive would do, at the time when it was made. It holds 8 bytes of each letter that is to be sent.
type Plan struct {
	Run string
	// Matched letters are Ready to be sent, SentBefore (by this run), or refused.
	Matched, Ready, SentBefore int64
	Refused                    []Refused
	// Reasons and Webhooks are of those that are ready, beginning with the one that has most.
	Reasons  []ReasonCount
	Webhooks []WebhookCount
	// Waiting are those ready whose webhook is paused or held by hand: they are parked until it is resumed or released.
	Waiting int64
	// Unmatched are the event ids asked for of which no letter matches.
	Unmatched []string
	// Unknowable are those ready that died before what the events topic still holds: whether they were sent again since, nobody can tell.
	Unknowable int64

	ready map[int32][]int64 // offsets in order, by partition
}

// Refused counts what is not sent for one reason.
type Refused struct {
	Refusal Refusal `json:"refusal"`
	Count   int64   `json:"count"`
	// First is a letter that it happened to, partition/offset.
	First string `json:"first"`
}

// ReasonCount counts letters by why they died.
type ReasonCount struct {
	Reason record.DeathReason `json:"reason"`
	Count  int64              `json:"count"`
}

// WebhookCount counts letters by webhook.
type WebhookCount struct {
	Webhook string `json:"webhook"`
	Count   int64  `json:"count"`
	// Waiting says that the webhook is paused or held by hand.
	Waiting bool `json:"waiting,omitempty"`
}

// ErrNoFilter refuses to send everything again.
var ErrNoFilter = errors.New("a redrive needs a filter")

// Validate refuses options that can't be meant.
func (o RedriveOptions) Validate() error {
	if o.Filter.Empty() {
		return ErrNoFilter
	}
	if err := o.Filter.Validate(); err != nil || o.Run == "" {
		return err
	}
	return record.ValidRedriveRun(o.Run)
}

// newRun is a name for a redrive, which begins with the time.
func newRun(now time.Time) string {
	return "redrive-" + now.UTC().Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:8])
}

// Plan finds out what a redrive would do. It writes nothing.
//
// Of each event the latest letter counts, among all that lie in the topic now. It is held against what the events topic and the delivery
// log say of the time since. Its memory is about 200 bytes for each matching letter of one partition.
func (r *Reader) Plan(ctx context.Context, o RedriveOptions, progress Progress) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	if o.Run == "" {
		o.Run = newRun(now)
	}
	p := &planning{RedriveOptions: o, reader: r, now: now, reasons: map[record.DeathReason]int64{}, found: map[string]bool{}, plan: &Plan{
		Run: o.Run, Refused: []Refused{}, Reasons: []ReasonCount{}, Webhooks: []WebhookCount{}, ready: map[int32][]int64{},
	}}
	spans, total, err := r.spans(ctx, o.Filter)
	if err != nil {
		return nil, fmt.Errorf("planning the redrive: %w", err)
	}
	var before int64
	for _, s := range spans {
		err := p.partition(ctx, s, func(next int64) { progress(readingLetters, before+next-s.start, total) }, progress)
		if err != nil {
			return nil, fmt.Errorf("planning the redrive: %w", err)
		}
		before += s.end - s.start
	}
	return p.finish(), nil
}

// planning is a Plan in the making.
type planning struct {
	RedriveOptions
	reader  *Reader
	now     time.Time
	plan    *Plan
	reasons map[record.DeathReason]int64
	found   map[string]bool // of the ids that the filter has
}

// partition plans one partition. All that concerns its webhooks lies in the partitions of the same number.
func (p *planning) partition(ctx context.Context, s span, read func(next int64), progress Progress) error {
	c := newCandidates()
	err := p.reader.scan(ctx, s, func(l *record.DeadLetter, written time.Time) error {
		p.consider(c, l, written)
		return nil
	}, read)
	if err != nil {
		return err
	}
	if len(c.letters) == 0 {
		return nil
	}
	if err := p.reader.compare(ctx, s.partition, c, p.Run, progress); err != nil {
		return err
	}
	for _, l := range c.inOrder() {
		switch refusal := l.refusal(p.Force); {
		case l.sentByRun:
			p.plan.SentBefore++
		case refusal != "":
			p.refuse(refusal, s.partition, l.offset)
		default:
			p.accept(s.partition, l)
		}
	}
	for id, w := range c.webhooks {
		if w.ready > 0 {
			p.plan.Webhooks = append(p.plan.Webhooks, WebhookCount{Webhook: id, Count: w.ready, Waiting: w.waiting})
		}
	}
	return nil
}

// consider takes a letter as one to be sent, unless it says itself that it can't be. A later letter of an event, whether it matches or
// not, takes the place of the earlier one.
func (p *planning) consider(c *candidates, l *record.DeadLetter, written time.Time) {
	if earlier := c.take(l); earlier != nil {
		p.refuse(Superseded, l.Position.Partition, earlier.offset)
	}
	if !p.Filter.match(l, written) {
		return
	}
	p.plan.Matched++
	if len(p.Filter.IDs) > 0 {
		p.found[l.ID] = true
	}
	if l.RedriveRun() == p.Run { // it died again: a run never takes up what it has sent
		p.plan.SentBefore++
		return
	}
	if refusal := refusalOf(l, p.reader.topo, p.Force, p.now); refusal != "" {
		p.refuse(refusal, l.Position.Partition, l.Position.Offset)
		return
	}
	c.add(l, written, p.reader.topo.Events())
}

func (p *planning) accept(partition int32, l *candidate) {
	p.plan.Ready++
	p.plan.ready[partition] = append(p.plan.ready[partition], l.offset)
	p.reasons[l.reason]++
	l.webhook.ready++
	if l.webhook.waiting {
		p.plan.Waiting++
	}
	if l.unknowable {
		p.plan.Unknowable++
	}
}

func (p *planning) refuse(why Refusal, partition int32, offset int64) {
	p.plan.Refused = countRefused(p.plan.Refused, why, partition, offset)
}

func countRefused(all []Refused, why Refusal, partition int32, offset int64) []Refused {
	i := slices.IndexFunc(all, func(r Refused) bool { return r.Refusal == why })
	if i < 0 {
		i, all = len(all), append(all, Refused{Refusal: why, First: fmt.Sprintf("%d/%d", partition, offset)})
	}
	all[i].Count++
	return all
}

func (p *planning) finish() *Plan {
	for _, id := range p.Filter.IDs {
		if !p.found[id] && !slices.Contains(p.plan.Unmatched, id) {
			p.plan.Unmatched = append(p.plan.Unmatched, id)
		}
	}
	for reason, count := range p.reasons {
		p.plan.Reasons = append(p.plan.Reasons, ReasonCount{reason, count})
	}
	slices.SortFunc(p.plan.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(p.plan.Webhooks, func(a, b WebhookCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Webhook, b.Webhook))
	})
	slices.SortFunc(p.plan.Refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Refusal, b.Refusal))
	})
	return p.plan
}
