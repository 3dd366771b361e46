package topology

import (
	"slices"
	"strconv"
	"time"
)

// Spec is one topic as it should be.
type Spec struct {
	Topic       string
	Partitions  int32
	Replication int16
	Config      map[string]string // only what Reenvio sets; everything else is left to whoever runs the cluster

	minRetention time.Duration // a shorter retention.ms loses records that are still needed; 0: nothing waits in this topic
	keepAll      bool          // retention.bytes would lose records that are still needed
	ofEvents     bool          // the topic that sets the size which all others must have room for
}

// The sizes of a batch, which Kafka limits as it is on the wire.
const (
	maxEventBytes = 1 << 20
	// headroom is for the headers that are added to an event on its way: ours, and in a dead letter what is known of its death.
	headroom = 128 << 10
)

// parkedMargin is how long before retention takes it a parked event is moved to the DLQ.
const parkedMargin = day

// Specs are all topics, in the order of a record's way through them.
func (t *Topology) Specs() []Spec {
	specs := []Spec{t.spec(t.Events(), kept(7*day), size(maxEventBytes), atLeast(2*t.longestTier()), func(s *Spec) { s.ofEvents = true })}
	for _, tier := range t.tiers {
		specs = append(specs, t.retrySpec(tier))
	}
	return append(specs,
		t.spec(t.Parked(), kept(14*day), unlimited, atLeast(parkedMargin+2*t.longestTier())),
		t.spec(t.DLQ(), kept(30*day)),
		t.spec(t.Attempts(), kept(7*day)),
		t.spec(t.State(), compacted),
		t.spec(t.Endpoints(), compacted),
		t.spec(t.Commands(), kept(30*day)),
		// Ids are read back over twice the window. Without a segment limit all the ids of a week would lie in one segment, which retention
		// can't take while it is written to, and every start would read them.
		t.spec(t.Delivered(), kept(max(time.Hour, 2*t.dedupWindow)), segments(10*time.Minute), atLeast(2*t.dedupWindow)),
	)
}

func (t *Topology) retrySpec(tier time.Duration) Spec {
	return t.spec(t.Retry(tier), kept(retryRetention), unlimited, atLeast(2*tier))
}

func (t *Topology) longestTier() time.Duration { return slices.Max(t.tiers) }

func (t *Topology) spec(topic string, traits ...func(*Spec)) Spec {
	s := Spec{
		Topic: topic, Partitions: t.cfg.Partitions, Replication: t.cfg.Replication,
		Config: map[string]string{
			"min.insync.replicas":            strconv.Itoa(minInSync(t.cfg.Replication)),
			"unclean.leader.election.enable": "false",
			"max.message.bytes":              strconv.Itoa(maxEventBytes + headroom),
		},
	}
	for _, trait := range traits {
		trait(&s)
	}
	return s
}

// minInSync: one broker may be away without stopping writes, and an acknowledged record survives the loss of one more, as far as the number of
// copies allows both.
func minInSync(replication int16) int { return max(1, int(replication)-1) }

func kept(retention time.Duration) func(*Spec) {
	return func(s *Spec) {
		s.Config["cleanup.policy"] = "delete"
		s.Config["retention.ms"] = millis(retention)
	}
}

// compacted is for topics that are read whole at every start: small segments are closed, and so compacted, soon.
func compacted(s *Spec) {
	s.Config["cleanup.policy"] = "compact"
	s.Config["min.cleanable.dirty.ratio"] = "0.1"
	s.Config["segment.bytes"] = strconv.Itoa(32 << 20)
	segments(10 * time.Minute)(s)
}

func segments(d time.Duration) func(*Spec) {
	return func(s *Spec) { s.Config["segment.ms"] = millis(d) }
}

func unlimited(s *Spec) {
	s.keepAll = true
	s.Config["retention.bytes"] = "-1"
}

func atLeast(d time.Duration) func(*Spec) { return func(s *Spec) { s.minRetention = d } }

func size(bytes int) func(*Spec) {
	return func(s *Spec) { s.Config["max.message.bytes"] = strconv.Itoa(bytes) }
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
