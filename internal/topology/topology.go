// Package topology is the one place that knows Reenvio's topics: their names, how many partitions they have, how long they keep a record, and
// which partition number a webhook lives in. It also compares that with what is on a cluster, and mends the difference.
//
// All topics have the same number of partitions N and a webhook has the same number in each of them, so that whoever owns number p owns all there
// is of its webhooks. For this reason the package never changes N of a topic that exists (keys would move to other numbers while their records
// stay), never deletes a topic, and refuses a set in which N differs.
package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config is the configuration under the key topics.
type Config struct {
	Prefix      string `koanf:"prefix" doc:"First part of every topic name, and of the transactional ids that endpoint writers use. 1 to 200 bytes of A-Za-z0-9._-; another prefix is another, separate Reenvio."`
	Partitions  int32  `koanf:"partitions" doc:"Number of partitions N of every topic: the most dispatchers that can share the work. 1 to 10000. It can't be changed for topics that exist; the way is a new prefix."`
	Replication int16  `koanf:"replication" doc:"Copies of every partition, from which min.insync.replicas follows (2 of 3, 1 of 1, otherwise one less). 1 to 32; 1 loses events with the broker that holds them."`
}

// DefaultConfig is what applies when nothing is configured.
func DefaultConfig() Config {
	return Config{Prefix: "webhooks.", Partitions: 12, Replication: 3}
}

const (
	maxPrefix      = 200 // a topic name has at most 249 bytes; the longest suffix of ours is far below 49
	maxPartitions  = 10_000
	maxReplication = 32
)

// Validate reports everything that is wrong with c, by key and bound.
func (c Config) Validate() error {
	var errs []error
	switch {
	case c.Prefix == "" || len(c.Prefix) > maxPrefix:
		errs = append(errs, fmt.Errorf("topics.prefix is %d bytes long: it must have 1 to %d", len(c.Prefix), maxPrefix))
	case strings.ContainsFunc(c.Prefix, func(r rune) bool { return !topicRune(r) }):
		errs = append(errs, fmt.Errorf("topics.prefix is %q: only A-Za-z0-9._- may be in a topic's name", c.Prefix))
	}
	if c.Partitions < 1 || c.Partitions > maxPartitions {
		errs = append(errs, fmt.Errorf("topics.partitions is %d: it must be 1 to %d", c.Partitions, maxPartitions))
	}
	if c.Replication < 1 || c.Replication > maxReplication {
		errs = append(errs, fmt.Errorf("topics.replication is %d: it must be 1 to %d", c.Replication, maxReplication))
	}
	return errors.Join(errs...)
}

func topicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// Topology is the set of topics that one configuration describes. It never changes and can be shared.
type Topology struct {
	cfg         Config
	tiers       []time.Duration // ascending
	dedupWindow time.Duration
}

// New describes the topics for the retry tiers and the window in which duplicates are recognised (0 = never). Tiers may come in any order; they
// must be such as [ParseTier] returns, each once, and short against the time that a retry topic keeps a record.
func New(cfg Config, tiers []time.Duration, dedupWindow time.Duration) (*Topology, error) {
	errs := []error{cfg.Validate()}
	if len(tiers) == 0 {
		errs = append(errs, errors.New("retry.tiers is empty: name at least one tier, such as 2s"))
	}
	sorted := slices.Sorted(slices.Values(tiers))
	for i, tier := range sorted {
		errs = append(errs, checkTier(tier))
		if i > 0 && tier == sorted[i-1] {
			errs = append(errs, fmt.Errorf("retry.tiers names %s twice", TierName(tier)))
		}
	}
	if dedupWindow < 0 || dedupWindow > maxDedupWindow {
		errs = append(errs, fmt.Errorf("dedup.window is %s: it must be 0 (off) to %s", dedupWindow, TierName(maxDedupWindow)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Topology{cfg: cfg, tiers: sorted, dedupWindow: dedupWindow}, nil
}

// Prefix is the first part of every topic's name.
func (t *Topology) Prefix() string { return t.cfg.Prefix }

// Partitions is N, the number of partitions of every topic.
func (t *Topology) Partitions() int32 { return t.cfg.Partitions }

// Tiers are the delays of the retry topics, shortest first.
func (t *Topology) Tiers() []time.Duration { return slices.Clone(t.tiers) }

// Events is where events come in.
func (t *Topology) Events() string { return t.cfg.Prefix + "events" }

// Parked holds events back whose webhook is paused, or can't keep up.
func (t *Topology) Parked() string { return t.cfg.Prefix + "parked" }

// DLQ holds the dead events, original bytes.
func (t *Topology) DLQ() string { return t.cfg.Prefix + "dlq" }

// Attempts has one record for each delivery attempt.
func (t *Topology) Attempts() string { return t.cfg.Prefix + "attempts" }

// State has the state of each webhook that is not simply healthy; compacted.
func (t *Topology) State() string { return t.cfg.Prefix + "state" }

// Endpoints has the configuration of each webhook; compacted.
func (t *Topology) Endpoints() string { return t.cfg.Prefix + "endpoints" }

// Commands has acts and their results.
func (t *Topology) Commands() string { return t.cfg.Prefix + "commands" }

// Delivered has the ids of what was delivered a short while ago.
func (t *Topology) Delivered() string { return t.cfg.Prefix + "delivered" }

// Retry is the topic of one tier.
func (t *Topology) Retry(tier time.Duration) string { return t.retryPrefix() + TierName(tier) }

// Retries are the topics of all configured tiers, shortest first.
func (t *Topology) Retries() []string {
	names := make([]string, len(t.tiers))
	for i, tier := range t.tiers {
		names[i] = t.Retry(tier)
	}
	return names
}

// TierOf is the delay of a retry topic. It knows every topic that could be a retry topic of this prefix, configured or not: one whose tier was
// taken out of the configuration is drained, and a record in it still has that delay.
func (t *Topology) TierOf(topic string) (time.Duration, bool) {
	name, ok := strings.CutPrefix(topic, t.retryPrefix())
	if !ok {
		return 0, false
	}
	tier, err := ParseTier(name)
	return tier, err == nil
}

func (t *Topology) retryPrefix() string { return t.cfg.Prefix + "retry-" }

// Owned are the topics of which the owner of a number reads its partition in the consumer group: events, retries and commands. Retry topics that
// are drained ([Drained]) come on top.
func (t *Topology) Owned() []string {
	return slices.Concat([]string{t.Events()}, t.Retries(), []string{t.Commands()})
}
