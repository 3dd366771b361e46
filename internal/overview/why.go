package overview

import (
	"fmt"

	"github.com/reenvio/reenvio/internal/record"
)

// explain says why what is not done is not done: the event at the lowest incomplete offset, and the retry that has been due the longest.
func (r *reader) explain(v *view, owned bool) {
	if v.first != nil {
		v.IncompleteReason, v.IncompleteDetail = r.why(v, owned, v.first.Webhook, v.first.Source)
	}
	for i := range v.tiers {
		if t := &v.tiers[i]; t.Overdue > 0 {
			t.OverdueReason, _ = r.why(v, owned, t.OverdueWebhook, record.Source{})
		}
	}
}

// why: the first that holds. What concerns the number comes before what concerns the webhook, since nothing else matters while it lasts.
func (r *reader) why(v *view, owned bool, webhook string, at record.Source) (Reason, string) {
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
	case s.Head != nil && s.Head.Source == at:
		detail := fmt.Sprintf("%d attempts failed", s.Head.Attempts)
		if !s.Head.DueAt.IsZero() {
			detail += ", the next is due " + s.Head.DueAt.String()
		}
		return StrictHead, detail
	}
	return InFlight, ""
}

func by(h record.Hold) string {
	text := h.String()
	if h.By != "" {
		text += ", by " + h.By
	}
	return text
}
