package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

// mostProblems: with thousands of numbers one cause can show as often.
const mostProblems = 100

// judge says in words how it is: what needs a person first, then one line of figures.
func (o *Overview) judge() {
	ours := o.ownership()
	if len(o.expired) > 0 {
		ours = append(ours, Problem{
			Problem:  fmt.Sprintf("The committed offsets of %s have expired: the group was empty for longer than the brokers keep them, and no dispatcher begins there before a person says where.", nameOf(o.expired)),
			NextStep: "start one dispatcher once with the answer: reenvio dispatcher --from=earliest (send all that the topics still hold again), --from=latest, or --from=TIME",
		})
	}
	for _, h := range o.Holds {
		if h.Scope == record.HoldAll {
			ours = append(ours, Problem{Problem: "Everything is held" + byWhom(h) + ": nothing is sent.", NextStep: h.NextStep})
		}
	}
	o.Problems = append(append([]Problem{}, ours...), o.Problems...) // never nil: no problem is an empty list in JSON too
	if all := len(o.Problems); all > mostProblems {
		o.Problems = o.Problems[:mostProblems]
		o.Notes = append(o.Notes, fmt.Sprintf("%d of %d problems are listed", mostProblems, all))
	}
	o.OK = len(o.Problems) == 0
	o.Headline = o.headline()
}

// Add puts a problem found elsewhere with the others.
func (o *Overview) Add(p Problem) {
	o.Problems = append(o.Problems, p)
	o.OK = false
}

// ownership finds numbers that nobody serves.
func (o *Overview) ownership() []Problem {
	var orphans []int32
	for _, n := range o.Numbers {
		if n.Owner == "" {
			orphans = append(orphans, n.Number)
		}
	}
	switch {
	case len(orphans) == 0, o.moving: // numbers that are being shared out have no owner for a moment
		return nil
	case len(o.Dispatchers) == 0 && o.GroupState == groupDead:
		return []Problem{{
			Problem:  fmt.Sprintf("No dispatcher runs: Kafka knows no group %s. Events wait in Kafka, nothing is lost.", o.Group),
			NextStep: "start one: reenvio dispatcher; if one runs already, compare its dispatcher.group with the one of this command",
		}}
	case len(o.Dispatchers) == 0:
		return []Problem{{
			Problem:  fmt.Sprintf("No dispatcher runs: the group %s has no members. Events wait in Kafka, nothing is lost.", o.Group),
			NextStep: "start one: reenvio dispatcher; if it ended by itself, the last lines of its log say why",
		}}
	}
	return []Problem{{
		Problem:  fmt.Sprintf("%d of %d numbers without an owner: %s. Events wait in Kafka, nothing is lost.", len(orphans), o.Partitions, Ranges(orphans)),
		NextStep: "look at the group's members below: each must be a dispatcher of one version, with the same topics.* and retry.tiers; start another one if some are gone",
	}}
}

func byWhom(h Hold) string {
	text := ""
	if !h.At.IsZero() {
		text += " since " + h.At.String()
	}
	if h.By != "" {
		text += " by " + h.By
	}
	if h.Reason != "" {
		text += " (" + h.Reason + ")"
	}
	return text
}

// headline is the one line.
func (o *Overview) headline() string {
	parts := []string{fmt.Sprintf("%d of %d numbers owned by %s", o.OwnedNumbers, o.Partitions, Plural(int64(len(o.Dispatchers)), "dispatcher"))}
	if o.moving {
		parts = append(parts, "the group is rebalancing ("+o.GroupState+")")
	}
	parts = append(parts, "backlog "+atMost(o.Backlog, o.BacklogIsBound))
	var waiting, overdue int64
	bound := false
	for _, t := range o.RetryTiers {
		waiting, overdue, bound = waiting+t.Waiting, overdue+t.Overdue, bound || t.WaitingIsBound
	}
	retries := atMost(waiting, bound) + " retries wait"
	if waiting == 1 && !bound {
		retries = "1 retry waits"
	}
	if overdue > 0 {
		retries += fmt.Sprintf(", %d of them overdue", overdue)
	}
	parts = append(parts, retries, Plural(int64(o.WebhooksPaused), "webhook")+" paused")
	if o.WebhooksReturning > 0 {
		parts = append(parts, fmt.Sprintf("%d returning", o.WebhooksReturning))
	}
	if len(o.Holds) > 0 {
		parts = append(parts, Plural(int64(len(o.Holds)), "hold")+" by hand")
	}
	parts = append(parts, atMost(o.DeadLastHour, o.DeadIsBound)+" dead in the last hour")
	return strings.Join(parts, "; ")
}

func atMost(n int64, bound bool) string {
	if bound {
		return fmt.Sprintf("at most %d", n)
	}
	return fmt.Sprint(n)
}

// Plural is a count of things, one of which is called what.
func Plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func nameOf(numbers []int32) string {
	if len(numbers) == 1 {
		return "number " + Ranges(numbers)
	}
	return "the numbers " + Ranges(numbers)
}

// Ranges writes numbers for people: "0 to 3, 7".
func Ranges(numbers []int32) string {
	sorted := slices.Sorted(slices.Values(numbers))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, fmt.Sprint(sorted[i]))
		case 1:
			parts = append(parts, fmt.Sprintf("%d, %d", sorted[i], sorted[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// holdsOverall: a hold of more than one webhook is a hold when all owners have taken it.
func (o *Overview) holdsOverall(numbers int32) {
	for _, h := range o.Holds {
		if h.Scope != record.HoldWebhook && h.Numbers < int(numbers) {
			o.Problems = append(o.Problems, Problem{
				Problem:  fmt.Sprintf("The hold of %s is in force in %d of %d numbers only: the owners of the others have not taken it, or have released it already.", holdName(h), h.Numbers, numbers),
				NextStep: "set it again, or release it: " + h.NextStep,
			})
		}
	}
}

func holdName(h Hold) string {
	if h.Value == "" {
		return string(h.Scope)
	}
	return string(h.Scope) + " " + h.Value
}

// mostNamed: the others are in the list of paused webhooks.
const mostNamed = 5

// unusable: a webhook whose configuration can't be used is not sent to before a person has looked, while its endpoint may be well. A keyset that
// isn't the right one concerns all webhooks of a dispatcher, and is one problem.
func (o *Overview) unusable() {
	var locked, owners []string
	for _, p := range o.Paused {
		switch {
		case !slices.Contains(p.PauseReasons, record.PauseConfig):
		case secrets.OtherKeyset(p.LastError):
			locked = append(locked, p.Webhook)
			if owner := o.Numbers[p.Number].Owner; owner != "" && !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
		default:
			o.Problems = append(o.Problems, Problem{
				Problem:  fmt.Sprintf("The configuration of the webhook %s can't be used: %s.", p.Webhook, record.ConfigProblem(p.LastError)),
				NextStep: p.NextStep,
			})
		}
	}
	if len(locked) == 0 {
		return
	}
	text := fmt.Sprintf("A dispatcher's keyset lacks the key that wrote %s, paused for that: %s", Plural(int64(len(locked)), "webhook"), someOf(locked))
	if len(owners) > 0 {
		text += " (owned now by " + someOf(owners) + ")"
	}
	id := "WEBHOOK"
	if len(locked) == 1 {
		id = locked[0]
	}
	o.Problems = append(o.Problems, Problem{Problem: text + ".", NextStep: secrets.OtherKeysetStep("the dispatcher", id)})
}

// someOf names the first ones.
func someOf(names []string) string {
	text := strings.Join(names[:min(mostNamed, len(names))], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
