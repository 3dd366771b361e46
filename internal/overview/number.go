package overview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

// view is all there is to say of one number. Whatever concerns a webhook lies in the partitions of its number, so numbers are looked at
// one by one, and only what is said of one is kept.
type view struct {
	Number
	tiers     []Tier
	webhooks  int
	paused    []Paused
	returning []Returning
	holds     []Hold
	parked    int64
	problems  []Problem
	expired   []string // topics whose committed offsets Kafka has dropped
	notes     []note

	states states
	facts  map[string]facts
	first  *record.Delivery // at the lowest incomplete offset
}

// note is something that was not counted to the last, of one topic.
type note struct{ topic, text string }

func (r *reader) number(ctx context.Context, number int32) (v *view, err error) {
	v = &view{Number: Number{Number: number}}
	owner, owned := r.group.owner(number)
	v.Owner, v.Host = owner.Instance, owner.Host
	v.LastCommitBy = r.committed[place{r.topo.Commands(), number}].cycle.Instance // the offset that goes with every cycle
	if v.states, err = r.states(ctx, number); err != nil {
		return nil, err
	}
	if err := r.events(ctx, v); err != nil {
		return nil, err
	}
	for _, topic := range r.retries {
		t, err := r.tier(ctx, place{topic, number})
		if err != nil {
			return nil, err
		}
		v.tiers = append(v.tiers, t)
	}
	if err := r.commands(ctx, v); err != nil {
		return nil, err
	}
	if v.webhooks, v.facts, err = r.endpoints(ctx, number, v.interest()); err != nil {
		return nil, err
	}
	r.offsets(v)
	r.explain(v, owned)
	v.people()
	return v, nil
}

// interest are the webhooks whose configuration says more of what is shown.
func (v *view) interest() map[string]bool {
	ids := map[string]bool{v.IncompleteWebhook: true}
	for _, t := range v.tiers {
		ids[t.OverdueWebhook] = true
	}
	for id, s := range v.states.webhooks {
		if s.Status == record.Paused || s.Parked != nil && len(v.states.number.Holds) > 0 {
			ids[id] = true
		}
	}
	return ids
}

// events counts what is not done in the events topic, and finds the first of it.
func (r *reader) events(ctx context.Context, v *view) error {
	at := place{r.topo.Events(), v.Number.Number}
	parts, _ := r.open(at)
	v.IncompleteOffset = r.ends[at].end
	if len(parts) > 0 {
		v.IncompleteOffset = parts[0].from
	}
	left, err := r.scan(ctx, at, parts, share(eventsBudget, int(r.topo.Partitions())), func(rec *kgo.Record) {
		v.Backlog++
		if v.first == nil {
			v.first, _ = record.FromEvent(rec) // what can't be read of it is left empty
			v.IncompleteOffset, v.IncompleteSince = rec.Offset, record.At(rec.Timestamp)
			v.IncompleteWebhook, v.IncompleteEventID = v.first.Webhook, v.first.ID
		}
	})
	if err != nil {
		return fmt.Errorf("reading the backlog of number %d: %w", v.Number.Number, err)
	}
	if more := lengthOf(left); more > 0 {
		v.Backlog += more
		v.BacklogIsBound = true
	}
	if v.first == nil && v.Backlog == 0 { // markers only, or nothing
		v.IncompleteOffset = r.ends[at].end
	}
	if v.first == nil && v.Backlog > 0 {
		v.IncompleteReason = OpenTransaction
		v.IncompleteOffset = left[0].from
	}
	return nil
}

// commands counts those that nobody has answered.
func (r *reader) commands(ctx context.Context, v *view) error {
	at := place{r.topo.Commands(), v.Number.Number}
	parts, _ := r.open(at)
	if _, known := r.committed[at]; !known && v.states.number.HasTopic(at.topic) {
		return nil // expired: which of them are done is not known
	}
	left, err := r.scan(ctx, at, parts, share(commandsBudget, int(r.topo.Partitions())), func(rec *kgo.Record) {
		if record.KindOf(rec.Value) == record.KindCommand {
			v.CommandsWaiting++
		}
	})
	if err != nil {
		return fmt.Errorf("reading the commands of number %d: %w", v.Number.Number, err)
	}
	if left := lengthOf(left); left > 0 && r.ends[at].stable == r.ends[at].end {
		v.notes = append(v.notes, note{at.topic, "more commands wait than were read"})
	}
	return nil
}

// offsets finds committed offsets that can't be right.
func (r *reader) offsets(v *view) {
	for _, topic := range r.topics {
		at := place{topic, v.Number.Number}
		c, known := r.committed[at]
		b := r.ends[at]
		name := fmt.Sprintf("%s/%d", topic, at.number)
		switch _, lost := r.open(at); {
		case !known && v.states.number.HasTopic(topic):
			v.expired = append(v.expired, topic)
		case !known:
		case c.at > b.end:
			v.problem(fmt.Sprintf("The committed offset of %s is %d, but the topic ends at %d: it was made anew, or lost records.", name, c.at, b.end),
				"find out what happened to the topic; the dispatcher begins it at its start, and delivers what is there again")
		case lost > 0:
			v.problem(fmt.Sprintf("Retention took up to %s of %s too early (offsets %d to %d).", Plural(lost, "record"), name, c.at, b.start-1),
				"compare retention.ms of the topic with how long its oldest record has waited; send the events again from where they came from")
		}
		if c.foreign != nil {
			v.notes = append(v.notes, note{topic, "an offset was committed by something else than a dispatcher, all from there on counts as not done"})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.states.unreadable)) {
		at := v.states.unreadable[key]
		what, next := "The state of the webhook "+key, ""
		if record.ValidWebhookID(key) == nil {
			next = "its owner takes it for paused; when its endpoint is well: reenvio webhooks resume " + key
		}
		if key == record.NumberKey {
			what, next = fmt.Sprintf("The state of number %d", at.Partition), "see which program wrote it; holds by hand of that number have to be set again"
		}
		v.problem(fmt.Sprintf("%s can't be read (%s).", what, at), next)
	}
}

func (v *view) problem(text, next string) {
	v.problems = append(v.problems, Problem{Problem: text, NextStep: next})
}

// people collects what waits for a person.
func (v *view) people() {
	number := make([]int64, len(v.states.number.Holds)) // parked for each of the number's holds
	for id, s := range v.states.webhooks {
		var parked int64
		var oldest record.Time
		if s.Parked != nil {
			parked, oldest = s.Parked.Count, s.Parked.OldestAt
		}
		v.parked += parked
		f := v.facts[id]
		switch {
		case s.Status == record.Paused:
			v.paused = append(v.paused, Paused{
				Webhook: id, Number: v.Number.Number, Tenant: f.tenant, URLHost: f.urlHost, PauseReasons: s.PauseReasons, PausedAt: s.PausedAt,
				ConsecutiveFailures: s.ConsecutiveFailures, LastStatus: s.LastStatus, LastError: s.LastError,
				Parked: parked, OldestParkedAt: oldest, NextStep: afterPause(id, s),
			})
		case s.Hold != nil: // below
		case v.heldBy(f) >= 0:
			number[v.heldBy(f)] += parked
		case parked > 0:
			v.returning = append(v.returning, Returning{Webhook: id, Number: v.Number.Number, Parked: parked, OldestParkedAt: oldest})
		}
		if h := s.Hold; h != nil {
			v.holds = append(v.holds, holdOf(record.Hold{Scope: record.HoldWebhook, Value: id, By: h.By, At: h.At, Reason: h.Reason}, parked))
		}
	}
	for i, h := range v.states.number.Holds {
		v.holds = append(v.holds, holdOf(h, number[i]))
	}
}

// heldBy is which of the number's holds concerns a webhook; -1 for none.
func (v *view) heldBy(f facts) int {
	return slices.IndexFunc(v.states.number.Holds, func(h record.Hold) bool { return h.Concerns(f.tenant, f.urlHost) })
}

func holdOf(h record.Hold, parked int64) Hold {
	return Hold{Scope: h.Scope, Value: h.Value, By: h.By, At: h.At, Reason: h.Reason, Numbers: 1, Parked: parked, NextStep: releaseOf(h)}
}

// releaseOf is the command that ends a hold.
func releaseOf(h record.Hold) string {
	if h.Scope == record.HoldAll {
		return "reenvio release --all"
	}
	return fmt.Sprintf("reenvio release --%s %s", h.Scope, quoted(h.Value))
}

// afterPause says what to do about a pause. The configuration's own reasons come first: a person's resume does not lift them.
func afterPause(id string, s record.State) string {
	if record.ValidWebhookID(id) != nil {
		return "this is no legal webhook id: see who wrote the record"
	}
	switch {
	case s.HasPause(record.PauseConfig) && secrets.OtherKeyset(s.LastError):
		return secrets.OtherKeysetStep("the dispatcher", id)
	case s.HasPause(record.PauseConfig):
		return "mend its configuration, it goes on by itself then: reenvio webhooks update " + id + " --help"
	case s.HasPause(record.PauseDisabled):
		return "reenvio webhooks update " + id + " --enabled=true"
	case slices.Equal(s.PauseReasons, []record.PauseReason{record.PauseManual}):
		return "reenvio webhooks resume " + id
	}
	return "when its endpoint is well (reenvio webhooks test " + id + "): reenvio webhooks resume " + id
}

// quoted is a word for the shell.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._:-/@,", c)
	}
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
