package overview

import (
	"fmt"

	"github.com/reenvio/reenvio/internal/record"
)

// explain says why what is not done is not done: the event at the lowest incomplete offset, and the retry that has been due the longest.
func (r *reader) explain(v *view, owned bool) {
	if v.first != nil {
		v.IncompleteReason, v.IncompleteDetail = r.why(v, owned, v.first.Webhook)
		if h := v.behind(); h != nil && v.IncompleteReason == InFlight {
			v.IncompleteReason, v.IncompleteDetail = StrictHead, headText(h)
		}
	}
	for i := range v.tiers {
		if t := &v.tiers[i]; t.Overdue > 0 {
			t.OverdueReason, _ = r.why(v, owned, t.OverdueWebhook)
		}
	}
}

// why: the first that holds. What concerns the number comes before what concerns the webhook, since nothing else matters while it lasts.
func (r *reader) why(v *view, owned bool, webhook string) (Reason, string) {
	switch {
	case !owned && r.group.moving():
		return Rebalancing, "the group shares its numbers out anew"
	case !owned && v.LastCommitBy != "":
		return NoOwner, "its last owner was " + v.LastCommitBy
	case !owned:
		return NoOwner, ""
	}
	s, f := v.states.webhooks[webhook], v.facts[webhook]
	if i := v.heldBy(f); i >= 0 {
		return Held, by(v.states.number.Holds[i])
	}
	switch {
	case s.Hold != nil:
		return Held, by(record.Hold{Scope: record.HoldWebhook, By: s.Hold.By})
	case s.HoldUntil.After(r.now):
		return Held, "until " + s.HoldUntil.String() + ", as its endpoint asked"
	case s.HasPause(record.PauseConfig):
		return Config, ""
	case s.Status == record.Paused:
		return WebhookPaused, ""
	}
	return InFlight, ""
}

// behind is the failed event that keeps the first one back, by the order of their webhook; nil when none does. It lies in another topic by
// now: a head holds no offset back.
func (v *view) behind() (head *record.Head) {
	ordering := v.facts[v.first.Webhook].ordering
	s, key := v.states.webhooks[v.first.Webhook], record.OrderingKeyHash(v.first.PartitionKey)
	if ordering != record.OrderStrict && ordering != record.OrderStrictKey || s.HeadAt(v.first.Source) != nil {
		return nil
	}
	s.EachHead(func(h *record.Head) bool {
		if ordering == record.OrderStrict || h.Key == key {
			head = h
		}
		return head == nil
	})
	return head
}

func headText(h *record.Head) string {
	text := fmt.Sprintf("behind %s, failed attempts: %d", h.Source, h.Attempts)
	switch {
	case h.Parked:
		text += ", parked"
	case !h.DueAt.IsZero():
		text += ", the next is due " + h.DueAt.String()
	}
	return text
}

func by(h record.Hold) string {
	text := h.String()
	if h.By != "" {
		text += ", by " + h.By
	}
	return text
}
