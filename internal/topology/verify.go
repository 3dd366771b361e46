package topology

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// WrongSetError is the answer of [Verify] to a set of topics in which Reenvio would lose or misplace records.
type WrongSetError struct {
	Prefix string
	Faults []string
}

func (e *WrongSetError) Error() string {
	return fmt.Sprintf("the topics of prefix %q can't be used: %s; `reenvio topics plan` shows the difference and `reenvio topics apply` mends it",
		e.Prefix, strings.Join(grouped(e.Faults), "; "))
}

// grouped says once what several topics have in common, such as another number of partitions. A fault begins with its topic.
func grouped(faults []string) []string {
	var groups []string
	topics := map[string][]string{}
	for _, fault := range faults {
		topic, text, _ := strings.Cut(fault, " ")
		if topics[text] == nil {
			groups = append(groups, text)
		}
		topics[text] = append(topics[text], topic)
	}
	for i, text := range groups {
		groups[i] = topics[text][0] + " " + text
		if others := topics[text][1:]; len(others) > 0 {
			groups[i] += "; the same of " + strings.Join(others, ", ")
		}
	}
	return groups
}

// Verify is what every process does at its start. It refuses ([WrongSetError], with every fault) only what would lose or misplace records: a missing
// topic, another N, the wrong cleanup, a retention that is shorter than the delays, too little room for an event and our headers. All else that
// differs from the plan is the operators' choice.
func Verify(ctx context.Context, adm *kadm.Client, t *Topology) error {
	specs, topics, err := look(ctx, adm, t)
	if err != nil {
		return err
	}
	var faults []string
	events := topics[t.Events()].number("max.message.bytes")
	for _, spec := range specs {
		have, ok := topics[spec.Topic]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s is missing (or not visible to this user)", spec.Topic))
			continue
		}
		faults = append(faults, spec.faults(have, events)...)
	}
	if faults != nil {
		return &WrongSetError{Prefix: t.cfg.Prefix, Faults: faults}
	}
	return nil
}

// faults compares what must hold. events is the size that a batch on the events topic may have.
func (s Spec) faults(have found, events int64) []string {
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, s.Topic+" "+fmt.Sprintf(format, args...))
	}
	if have.partitions != s.Partitions {
		fault("has %d partitions, topics.partitions is %d (it never changes in place: set it to %[1]d, or take a new topics.prefix)", have.partitions, s.Partitions)
	}
	if got, want := have.config["cleanup.policy"], s.Config["cleanup.policy"]; got != want {
		fault("has cleanup.policy=%s, it must be %s", got, want)
	}
	// In ms: the largest value, often used for "for ever", is no time.Duration.
	if ms := have.number("retention.ms"); ms >= 0 && ms < s.minRetention.Milliseconds() {
		fault("has retention.ms=%d, shorter than the %s for which its records are needed", ms, TierName(s.minRetention))
	}
	if got := have.config["retention.bytes"]; s.keepAll && got != "-1" {
		fault("has retention.bytes=%s, which drops records that still wait: it must be -1", got)
	}
	if got := have.number("max.message.bytes"); !s.ofEvents && events > 0 && got < events+headroom {
		fault("has max.message.bytes=%d, it must be at least %d: as much as the events topic, and room for headers", got, events+headroom)
	}
	return faults
}

// number is a setting's value; -1, which is "no limit" where a limit is meant, when there is none.
func (f found) number(key string) int64 {
	n, err := strconv.ParseInt(f.config[key], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
