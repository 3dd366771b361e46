package kafkatest

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/topology"
)

// Kafka is the configuration that reaches this cluster. Set the InstanceID of
// each process that gets one: two with the same stop each other.
func (c *Cluster) Kafka() kafka.Config {
	return kafka.Config{Brokers: c.Brokers, Dial: c.Dial, InstanceID: "test"}
}

// Prefix is a topic prefix, and with a suffix a group, of this test alone, so
// that tests share a cluster: "t-<test>-<random>.".
func Prefix(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return "t-" + name[:min(len(name), 60)] + "-" + rand.Text()[:8] + "."
}

// Topology describes a set of topics of this test alone. Without tiers it has
// the default ones.
func (c *Cluster) Topology(t testing.TB, partitions int32, tiers ...time.Duration) *topology.Topology {
	t.Helper()
	if len(tiers) == 0 {
		tiers = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
	}
	cfg := topology.Config{Prefix: Prefix(t), Partitions: partitions, Replication: int16(min(3, len(c.Brokers)))}
	topo, err := topology.New(cfg, tiers, 10*time.Minute)
	if err != nil {
		t.Fatalf("describing the test's topics: %v", err)
	}
	return topo
}

// CreateTopics makes the topics as `reenvio topics apply` does, and takes them
// away at the end of the test: a shared cluster would fill up.
func (c *Cluster) CreateTopics(t testing.TB, topo *topology.Topology) {
	t.Helper()
	adm := kadm.NewClient(c.Client(t))
	changes, err := topology.Plan(t.Context(), adm, topo)
	if err != nil {
		t.Fatalf("planning the test's topics: %v", err)
	}
	if err := changes.Apply(t.Context(), adm, nil); err != nil {
		t.Fatalf("making the test's topics: %v", err)
	}
	if !c.OnApache() {
		return // it goes with the test
	}
	c.awaitTopics(t, topo)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var names []string
		for _, spec := range topo.Specs() {
			names = append(names, spec.Topic)
		}
		if _, err := adm.DeleteTopics(ctx, names...); err != nil {
			t.Logf("taking the test's topics away: %v", err)
		}
	})
}

// awaitTopics returns when every broker knows the topics and every leader serves
// its partitions. The answer to their creation comes from the controller; for a
// while after it brokers say UNKNOWN_TOPIC_OR_PARTITION.
func (c *Cluster) awaitTopics(t testing.TB, topo *topology.Topology) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var names []string
	for _, spec := range topo.Specs() {
		names = append(names, spec.Topic)
	}
	for _, addr := range c.Brokers {
		adm := kadm.NewClient(c.Client(t, kgo.SeedBrokers(addr), kgo.MetadataMinAge(healthPoll/2)))
		defer adm.Close()
		for {
			ends, err := adm.ListEndOffsets(ctx, names...)
			if err = cmp.Or(err, ends.Error()); err == nil {
				break
			}
			select {
			case <-time.After(healthPoll):
			case <-ctx.Done():
				t.Fatalf("waiting for broker %s to know the test's topics: %v", addr, err)
			}
		}
	}
}
