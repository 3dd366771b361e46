package topology

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var defaultTiers = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

func newTopology(t *testing.T, cfg Config, tiers ...time.Duration) *Topology {
	t.Helper()
	if tiers == nil {
		tiers = defaultTiers
	}
	topo, err := New(cfg, tiers, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func TestNames(t *testing.T) {
	topo := newTopology(t, Config{Prefix: "hooks-", Partitions: 3, Replication: 1}, time.Hour, time.Minute)
	for _, pair := range [][2]string{
		{topo.Events(), "hooks-events"},
		{topo.Parked(), "hooks-parked"},
		{topo.DLQ(), "hooks-dlq"},
		{topo.Attempts(), "hooks-attempts"},
		{topo.State(), "hooks-state"},
		{topo.Endpoints(), "hooks-endpoints"},
		{topo.Commands(), "hooks-commands"},
		{topo.Delivered(), "hooks-delivered"},
		{topo.Retry(time.Minute), "hooks-retry-1m"},
		{strings.Join(topo.Retries(), " "), "hooks-retry-1m hooks-retry-1h"},
		{strings.Join(topo.Owned(), " "), "hooks-events hooks-retry-1m hooks-retry-1h hooks-commands"},
		{topo.Prefix(), "hooks-"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("got %q, want %q", pair[0], pair[1])
		}
	}
	if tiers := topo.Tiers(); !slices.Equal(tiers, []time.Duration{time.Minute, time.Hour}) || topo.Partitions() != 3 {
		t.Errorf("tiers %v, partitions %d", tiers, topo.Partitions())
	}
}

func TestTierOfKnowsDrainedTopicsToo(t *testing.T) {
	topo := newTopology(t, DefaultConfig())
	for topic, want := range map[string]time.Duration{
		"webhooks.retry-2s": 2 * time.Second, "webhooks.retry-10m": 10 * time.Minute,
		"webhooks.retry-60s": 0, "webhooks.retry-": 0, "webhooks.events": 0, "other.retry-2s": 0, "retry-2s": 0,
	} {
		if got, ok := topo.TierOf(topic); got != want || ok != (want != 0) {
			t.Errorf("TierOf(%q) = %v, %v, want %v", topic, got, ok, want)
		}
	}
}

func TestNewNamesEveryFaultAndItsBound(t *testing.T) {
	_, err := New(Config{Prefix: "web/hooks", Partitions: 0, Replication: 33}, []time.Duration{2 * time.Second, 2 * time.Second, 168 * time.Hour}, -1)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`topics.prefix is "web/hooks"`, "topics.partitions is 0: it must be 1 to 10000", "topics.replication is 33: it must be 1 to 32",
		"retry.tiers names 2s twice", "tier 168h in retry.tiers: it must be at most 84h", "dedup.window is -1ns: it must be 0 (off) to 168h",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if _, err := New(DefaultConfig(), nil, 0); err == nil || !strings.Contains(err.Error(), "retry.tiers is empty") {
		t.Errorf("without tiers: %v", err)
	}
	if _, err := New(Config{Partitions: 1, Replication: 1}, defaultTiers, 0); err == nil || !strings.Contains(err.Error(), "topics.prefix is 0 bytes long") {
		t.Errorf("without a prefix: %v", err)
	}
}

// The set that docs and other programs are written against.
func TestSpecsAreTheContract(t *testing.T) {
	const common = "partitions=12 replication=3 "
	const most = "max.message.bytes=1179648 min.insync.replicas=2 "
	const retry = common + "cleanup.policy=delete " + most + "retention.bytes=-1 retention.ms=604800000 unclean.leader.election.enable=false"
	const compact = common + "cleanup.policy=compact " + most + "min.cleanable.dirty.ratio=0.1 segment.bytes=33554432 segment.ms=600000 unclean.leader.election.enable=false"
	want := [][2]string{
		{"webhooks.events", common + "cleanup.policy=delete max.message.bytes=1048576 min.insync.replicas=2 retention.ms=604800000 unclean.leader.election.enable=false"},
		{"webhooks.retry-2s", retry},
		{"webhooks.retry-4s", retry},
		{"webhooks.retry-8s", retry},
		{"webhooks.retry-16s", retry},
		{"webhooks.parked", common + "cleanup.policy=delete " + most + "retention.bytes=-1 retention.ms=1209600000 unclean.leader.election.enable=false"},
		{"webhooks.dlq", common + "cleanup.policy=delete " + most + "retention.ms=2592000000 unclean.leader.election.enable=false"},
		{"webhooks.attempts", common + "cleanup.policy=delete " + most + "retention.ms=604800000 unclean.leader.election.enable=false"},
		{"webhooks.state", compact},
		{"webhooks.endpoints", compact},
		{"webhooks.commands", common + "cleanup.policy=delete " + most + "retention.ms=2592000000 unclean.leader.election.enable=false"},
		{"webhooks.delivered", common + "cleanup.policy=delete " + most + "retention.ms=3600000 segment.ms=600000 unclean.leader.election.enable=false"},
	}
	specs := newTopology(t, DefaultConfig()).Specs()
	// min.cleanable.dirty.ratio sorts between the two of most.
	dirty := strings.NewReplacer("min.insync.replicas=2 min.cleanable.dirty.ratio=0.1", "min.cleanable.dirty.ratio=0.1 min.insync.replicas=2")
	for i, spec := range specs {
		if i >= len(want) || spec.Topic != want[i][0] || spec.summary() != dirty.Replace(want[i][1]) {
			t.Errorf("%s: %s", spec.Topic, spec.summary())
		}
	}
	if len(specs) != len(want) {
		t.Errorf("%d topics, want %d", len(specs), len(want))
	}
}

func TestMinInSync(t *testing.T) {
	for replication, want := range map[int16]int{1: 1, 2: 1, 3: 2, 4: 3, 5: 4} {
		if got := minInSync(replication); got != want {
			t.Errorf("minInSync(%d) = %d, want %d", replication, got, want)
		}
	}
}

// Whatever configuration is accepted, what apply makes of it must pass Verify.
func TestEverySetThatIsAcceptedIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiers := rapid.SliceOfNDistinct(rapid.Map(rapid.Int64Range(1, int64(maxTier/time.Second)), func(s int64) time.Duration {
			return time.Duration(s) * time.Second
		}), 1, 6, rapid.ID).Draw(t, "tiers")
		window := time.Duration(rapid.Int64Range(0, int64(maxDedupWindow)).Draw(t, "window"))
		topo, err := New(DefaultConfig(), tiers, window)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range topo.Specs() {
			if faults := spec.faults(found{partitions: spec.Partitions, config: spec.Config}, maxEventBytes); faults != nil {
				t.Fatal(faults)
			}
		}
	})
}
