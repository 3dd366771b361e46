package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// The kinds of change.
const (
	ChangeCreate      = "create"
	ChangeConfig      = "config"
	ChangePartitions  = "partitions"  // can't be applied
	ChangeReplication = "replication" // can't be applied
)

// Change is one difference between what is there and what should be.
type Change struct {
	Topic  string `json:"topic"`
	Change string `json:"change"` // create, config, partitions or replication
	From   string `json:"from"`   // "" for create; for config, key=value
	To     string `json:"to"`     // for create, all that the topic gets

	spec       Spec // for create
	key, value string
}

// Appliable is false for what Reenvio never does to a topic: Hint then says what to do instead.
func (c Change) Appliable() bool { return c.Hint() == "" }

// Hint is the way out of a change that can't be applied, "" for all others.
func (c Change) Hint() string {
	switch c.Change {
	case ChangePartitions:
		return fmt.Sprintf("the number of partitions never changes in place, since webhooks would move to other numbers while their records stay: set topics.partitions to %s, "+
			"or take a new topics.prefix, copy the endpoints, switch the producers and drain the old topics", c.From)
	case ChangeReplication:
		return fmt.Sprintf("copies are moved with Kafka's own tools (kafka-reassign-partitions.sh): do that, or set topics.replication to %s, or take a new topics.prefix", c.From)
	}
	return ""
}

// Deletes is true for a retention that becomes shorter: Kafka deletes the records that are beyond it, whether or not they still wait.
func (c Change) Deletes() bool {
	was, isTime := strings.CutPrefix(c.From, "retention.ms=")
	if !isTime {
		return false
	}
	from, err := strconv.ParseInt(was, 10, 64)
	to, _ := strconv.ParseInt(c.value, 10, 64) // ours: a number, never "for ever"
	return err == nil && (from < 0 || from > to)
}

func (c Change) String() string {
	s := c.Topic + ": " + c.Change
	if c.From != "" {
		s += " " + c.From + " ->"
	}
	s += " " + c.To
	if hint := c.Hint(); hint != "" {
		s += " (can't be applied: " + hint + ")"
	}
	return s
}

// Changes are in the order of [Topology.Specs] with drained topics at the end, and by key within a topic.
type Changes []Change

// Plan compares the cluster with t: the existence and shape of each topic, and the settings that Reenvio sets. It changes nothing.
func Plan(ctx context.Context, adm *kadm.Client, t *Topology) (Changes, error) {
	specs, topics, err := look(ctx, adm, t)
	if err != nil {
		return nil, err
	}
	changes := Changes{} // never nil: nothing to do is an empty list in JSON too
	for _, spec := range specs {
		if have, ok := topics[spec.Topic]; ok {
			changes = append(changes, differences(spec, have)...)
		} else {
			changes = append(changes, Change{Topic: spec.Topic, Change: ChangeCreate, To: spec.summary(), spec: spec})
		}
	}
	return changes, nil
}

func differences(spec Spec, have found) Changes {
	var changes Changes
	if have.partitions != spec.Partitions {
		changes = append(changes, Change{Topic: spec.Topic, Change: ChangePartitions, From: fmt.Sprint(have.partitions), To: fmt.Sprint(spec.Partitions)})
	}
	if have.replication != int(spec.Replication) {
		changes = append(changes, Change{Topic: spec.Topic, Change: ChangeReplication, From: fmt.Sprint(have.replication), To: fmt.Sprint(spec.Replication)})
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Config)) {
		if from, to := have.config[key], spec.Config[key]; from != to {
			changes = append(changes, Change{Topic: spec.Topic, Change: ChangeConfig, From: key + "=" + from, To: key + "=" + to, key: key, value: to})
		}
	}
	return changes
}

func (s Spec) summary() string {
	parts := []string{fmt.Sprintf("partitions=%d", s.Partitions), fmt.Sprintf("replication=%d", s.Replication)}
	for _, key := range slices.Sorted(maps.Keys(s.Config)) {
		parts = append(parts, key+"="+s.Config[key])
	}
	return strings.Join(parts, " ")
}
