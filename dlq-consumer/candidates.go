package dlqconsumer

import (
	"cmp"
	"crypto/sha256"
	"math"
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// candidates are the letters of one partition that may be sent again: of each event the latest.
type candidates struct {
	letters  map[eventKey]*candidate
	webhooks map[string]*webhook
}

// eventKey is a hash of webhook and event id, neither of which holds a NUL: ids may have 256 bytes each.
type eventKey [16]byte

func keyOf(webhook, id string) eventKey {
	sum := sha256.Sum256([]byte(webhook + "\x00" + id))
	return eventKey(sum[:16])
}

// candidate is a letter, and what has become of its event since.
type candidate struct {
	webhook *webhook
	reason  record.DeathReason
	offset  int64     // of the letter
	written time.Time // of the letter
	source  int64     // the event's own record on the events topic; -1 when that is another topic, of another set

	redriven   int64 // the last record that sent it again; -1 for none
	ended      int64 // the last record of it that came to a good end; -1 for none
	delivered  bool  // since it died
	sentByRun  bool
	unknowable bool
}

// webhook is what counts for all letters of one.
type webhook struct {
	known, deleted, waiting bool
	tenant, host            string
	ready                   int64
}

func newCandidates() *candidates {
	return &candidates{letters: map[eventKey]*candidate{}, webhooks: map[string]*webhook{}}
}

// take removes the candidate of the event that l is a letter of.
func (c *candidates) take(l *record.DeadLetter) *candidate {
	key := keyOf(l.Webhook, l.ID)
	earlier := c.letters[key]
	delete(c.letters, key)
	return earlier
}

func (c *candidates) add(l *record.DeadLetter, written time.Time, events string) {
	if c.webhooks[l.Webhook] == nil {
		c.webhooks[l.Webhook] = &webhook{}
	}
	source := int64(-1)
	if l.Source.Topic == events && l.Source.Partition == l.Position.Partition {
		source = l.Source.Offset
	}
	c.letters[keyOf(l.Webhook, l.ID)] = &candidate{
		webhook: c.webhooks[l.Webhook], reason: l.Reason, offset: l.Position.Offset, written: written, source: source, redriven: -1, ended: -1,
	}
}

func (c *candidates) inOrder() []*candidate {
	all := make([]*candidate, 0, len(c.letters))
	for _, l := range c.letters {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.offset, b.offset) })
	return all
}

// firstSource is the earliest record of any of their events, and firstWritten when the earliest of their letters was.
func (c *candidates) firstSource() int64 {
	first := int64(math.MaxInt64)
	for _, l := range c.letters {
		first = min(first, l.source)
	}
	return first
}

func (c *candidates) firstWritten() time.Time {
	var first time.Time
	for _, l := range c.letters {
		if first.IsZero() || l.written.Before(first) {
			first = l.written
		}
	}
	return first
}

// refusal is what the time since the death tells.
//
// An event that was sent again and is on its way is never sent once more, force or not: there would be two chains of it. One whose last
// chain ended well is.
func (l *candidate) refusal(force bool) Refusal {
	switch {
	case l.webhook.deleted:
		return WebhookDeleted
	case !l.webhook.known:
		return WebhookUnknown
	case l.redriven > l.ended:
		return AlreadyRedriven
	case l.delivered && !force:
		return DeliveredSince
	}
	return ""
}
