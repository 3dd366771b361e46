package dlqconsumer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Filter picks dead letters: those that fit every field which is not empty, and in a list any one of its members.
type Filter struct {
	Webhooks []string
	Reasons  []record.DeathReason
	IDs      []string // of events
	// Since and Until bound the time of death, both included; zero is no bound.
	Since, Until time.Time
}

// Empty says that it picks all letters.
func (f Filter) Empty() bool {
	return len(f.Webhooks) == 0 && len(f.Reasons) == 0 && len(f.IDs) == 0 && f.Since.IsZero() && f.Until.IsZero()
}

// Validate refuses what no dead letter can have: such a filter finds nothing, and its author would take that for an answer.
func (f Filter) Validate() error {
	for _, reason := range f.Reasons {
		if !slices.Contains(record.DeathReasons(), reason) {
			return fmt.Errorf("the reason %q does not exist; there are %s", reason, reasonNames())
		}
	}
	for _, webhook := range f.Webhooks {
		if err := record.ValidWebhookID(webhook); err != nil {
			return err
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && f.Until.Before(f.Since) {
		return fmt.Errorf("nothing lies between %s and %s: the first must be the earlier one", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	return nil
}

func reasonNames() string {
	var names []string
	for _, reason := range record.DeathReasons() {
		names = append(names, string(reason))
	}
	return strings.Join(names, ", ")
}

// match says whether a letter that was written at the given time is picked.
func (f Filter) match(l *record.DeadLetter, written time.Time) bool {
	died := diedAt(l, written)
	return within(f.Webhooks, l.Webhook) && within(f.Reasons, l.Reason) && within(f.IDs, l.ID) &&
		(f.Since.IsZero() || !died.Before(f.Since)) && (f.Until.IsZero() || !died.After(f.Until))
}

func within[T comparable](list []T, one T) bool { return len(list) == 0 || slices.Contains(list, one) }

// diedAt is when the event died; of a letter that doesn't say, when it was written.
func diedAt(l *record.DeadLetter, written time.Time) time.Time {
	if l.DiedAt.IsZero() {
		return written
	}
	return l.DiedAt.Time
}

// partitions are those in which letters that match can lie, in order.
func (f Filter) partitions(topo *topology.Topology) []int32 {
	var some []int32
	for _, webhook := range f.Webhooks {
		some = append(some, topo.PartitionFor(webhook))
	}
	if len(f.Webhooks) == 0 {
		for p := range topo.Partitions() {
			some = append(some, p)
		}
	}
	slices.Sort(some)
	return slices.Compact(some)
}
