package topology

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func startCluster(t *testing.T) (*kfake.Cluster, *kadm.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cluster, kadm.NewClient(cl)
}

func plan(t *testing.T, adm *kadm.Client, topo *Topology) Changes {
	t.Helper()
	changes, err := Plan(t.Context(), adm, topo)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func apply(t *testing.T, adm *kadm.Client, topo *Topology) {
	t.Helper()
	if err := plan(t, adm, topo).Apply(t.Context(), adm, nil); err != nil {
		t.Fatal(err)
	}
}

func alter(t *testing.T, adm *kadm.Client, topic, key, value string) {
	t.Helper()
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}
	if _, err := adm.AlterTopicConfigs(t.Context(), set, topic); err != nil {
		t.Fatal(err)
	}
}

// faults are those that Verify finds.
func faults(t *testing.T, adm *kadm.Client, topo *Topology) []string {
	t.Helper()
	err := Verify(t.Context(), adm, topo)
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*WrongSetError](err)
	if !ok || !strings.Contains(err.Error(), "reenvio topics plan") || !strings.Contains(err.Error(), "reenvio topics apply") {
		t.Fatalf("an error that doesn't name the commands: %v", err)
	}
	return wrong.Faults
}

func lines(changes Changes) []string {
	var s []string
	for _, c := range changes {
		s = append(s, c.Topic+" "+c.Change+" "+c.From+" -> "+c.To)
	}
	return s
}

func TestPlanApplyPlan(t *testing.T) {
	_, adm := startCluster(t)
	topo := newTopology(t, Config{Prefix: "webhooks.", Partitions: 5, Replication: 3})

	if got := faults(t, adm, topo); len(got) != 12 {
		t.Errorf("Verify of an empty cluster names %d topics: %v", len(got), got)
	}
	changes := plan(t, adm, topo)
	var progress Changes
	if err := changes.Apply(t.Context(), adm, func(c Change) { progress = append(progress, c) }); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, spec := range topo.Specs() {
		want = append(want, spec.Topic+" create  -> "+spec.summary())
	}
	if !slices.Equal(lines(changes), want) || !slices.Equal(lines(progress), want) {
		t.Errorf("planned:\n%s\ndone:\n%s", strings.Join(lines(changes), "\n"), strings.Join(lines(progress), "\n"))
	}

	again, err := json.Marshal(plan(t, adm, topo))
	if err != nil || string(again) != "[]" {
		t.Errorf("the plan after apply is %s, %v", again, err)
	}
	if err := Verify(t.Context(), adm, topo); err != nil {
		t.Errorf("Verify after apply: %v", err)
	}
	details, err := adm.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range details.Names() {
		if p := details[topic].Partitions; len(p) != 5 || p.NumReplicas() != 3 {
			t.Errorf("%s has %d partitions, %d replicas", topic, len(p), p.NumReplicas())
		}
	}
}

func TestPlanListsAndApplyMendsOnlyWhatReenvioSets(t *testing.T) {
	_, adm := startCluster(t)
	topo := newTopology(t, DefaultConfig())
	apply(t, adm, topo)
	alter(t, adm, topo.DLQ(), "retention.ms", "1000")
	alter(t, adm, topo.DLQ(), "compression.type", "zstd")
	alter(t, adm, topo.DLQ(), "cleanup.policy", "compact,delete")
	alter(t, adm, topo.Events(), "min.insync.replicas", "1")

	changes := plan(t, adm, topo)
	if got, want := lines(changes), []string{
		"webhooks.events config min.insync.replicas=1 -> min.insync.replicas=2",
		"webhooks.dlq config cleanup.policy=compact,delete -> cleanup.policy=delete",
		"webhooks.dlq config retention.ms=1000 -> retention.ms=2592000000",
	}; !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	out, err := json.Marshal(changes[0])
	if err != nil || string(out) != `{"topic":"webhooks.events","change":"config","from":"min.insync.replicas=1","to":"min.insync.replicas=2"}` {
		t.Errorf("in JSON: %s, %v", out, err)
	}
	if err := changes.Apply(t.Context(), adm, nil); err != nil {
		t.Fatal(err)
	}
	if rest := plan(t, adm, topo); len(rest) != 0 {
		t.Errorf("left to do: %q", lines(rest))
	}
	_, topics, err := look(t.Context(), adm, topo)
	if err != nil || topics[topo.DLQ()].config["compression.type"] != "zstd" {
		t.Errorf("what Reenvio doesn't set has changed: %v, %v", topics[topo.DLQ()].config, err)
	}
}

func TestWhichChangesDelete(t *testing.T) {
	_, adm := startCluster(t)
	topo := newTopology(t, DefaultConfig())
	apply(t, adm, topo)
	alter(t, adm, topo.Parked(), "retention.ms", "-1")
	alter(t, adm, topo.DLQ(), "retention.ms", "2592000001")
	alter(t, adm, topo.Events(), "retention.ms", "604799999")
	alter(t, adm, topo.Attempts(), "max.message.bytes", "9999999")
	var deletes []string
	for _, c := range plan(t, adm, topo) {
		if c.Deletes() {
			deletes = append(deletes, c.Topic)
		}
	}
	if want := []string{topo.Parked(), topo.DLQ()}; !slices.Equal(deletes, want) {
		t.Errorf("changes of %q delete, want those of %q", deletes, want)
	}
}

func TestAnotherNumberOfPartitionsIsNeverApplied(t *testing.T) {
	cluster, adm := startCluster(t)
	topo := newTopology(t, Config{Prefix: "webhooks.", Partitions: 6, Replication: 3})
	if _, err := adm.CreateTopic(t.Context(), 4, 1, nil, topo.Events()); err != nil {
		t.Fatal(err)
	}
	changes := plan(t, adm, topo)
	got := lines(changes)
	if want := []string{"webhooks.events partitions 4 -> 6", "webhooks.events replication 1 -> 3"}; !slices.Equal(got[:2], want) {
		t.Errorf("got %q", got)
	}
	creates := kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics, kmsg.CreatePartitions, kmsg.IncrementalAlterConfigs}, Observe: true, Count: -1}
	written := cluster.Fault(creates)
	err := changes.Apply(t.Context(), adm, nil)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "new topics.prefix") || !strings.Contains(err.Error(), "replication 1 -> 3") {
		t.Errorf("Apply: %v", err)
	}
	if written.Hits() != 0 {
		t.Error("something was changed")
	}
	if changes[0].Appliable() || changes[1].Appliable() || !changes[2].Appliable() {
		t.Error("which of them can be applied is wrong")
	}
}

func TestVerifyListsEveryFault(t *testing.T) {
	_, adm := startCluster(t)
	topo := newTopology(t, Config{Prefix: "webhooks.", Partitions: 6, Replication: 3})
	apply(t, adm, topo)
	for _, topic := range []string{topo.Commands(), topo.Attempts()} {
		if _, err := adm.DeleteTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := adm.CreateTopic(t.Context(), 4, 3, map[string]*string{"max.message.bytes": new("3000000")}, topo.Commands()); err != nil {
		t.Fatal(err)
	}
	alter(t, adm, topo.State(), "cleanup.policy", "compact,delete")
	alter(t, adm, topo.Retry(16e9), "retention.ms", "31999")
	alter(t, adm, topo.Retry(8e9), "retention.bytes", "1000000")
	alter(t, adm, topo.Parked(), "retention.ms", "86400000")
	alter(t, adm, topo.Delivered(), "retention.ms", "1199999")
	alter(t, adm, topo.DLQ(), "max.message.bytes", "2131071")
	// The operators' own choices. The events are larger, so all others must be.
	alter(t, adm, topo.Events(), "max.message.bytes", "2000000")
	alter(t, adm, topo.Retry(2e9), "retention.ms", "4000")
	alter(t, adm, topo.Retry(4e9), "retention.ms", "-1")
	alter(t, adm, topo.Events(), "retention.ms", "9223372036854775807")
	for _, topic := range append(topo.Retries(), topo.Parked(), topo.State(), topo.Endpoints(), topo.Delivered()) {
		alter(t, adm, topic, "max.message.bytes", "2131072")
	}

	got := faults(t, adm, topo)
	want := []string{
		"webhooks.retry-8s has retention.bytes=1000000, which drops records that still wait: it must be -1",
		"webhooks.retry-16s has retention.ms=31999, shorter than the 32s for which its records are needed",
		"webhooks.parked has retention.ms=86400000, shorter than the 24h0m32s for which its records are needed",
		"webhooks.dlq has max.message.bytes=2131071, it must be at least 2131072: as much as the events topic, and room for headers",
		"webhooks.attempts is missing (or not visible to this user)",
		"webhooks.state has cleanup.policy=compact,delete, it must be compact",
		"webhooks.commands has 4 partitions, topics.partitions is 6 (it never changes in place: set it to 4, or take a new topics.prefix)",
		"webhooks.delivered has retention.ms=1199999, shorter than the 20m for which its records are needed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDrainedTopicsAreReadAndLookedAfter(t *testing.T) {
	_, adm := startCluster(t)
	apply(t, adm, newTopology(t, DefaultConfig(), append(defaultTiers, 60e9, 3600e9)...))
	for _, topic := range []string{"other.retry-32s", "webhooks.retry-60s", "webhooks.retry-log"} {
		if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	topo := newTopology(t, DefaultConfig())
	drained, err := Drained(t.Context(), adm, topo)
	if err != nil || !slices.Equal(drained, []string{"webhooks.retry-1h", "webhooks.retry-1m"}) {
		t.Errorf("Drained: %v, %v", drained, err)
	}
	if changes, wrong := plan(t, adm, topo), faults(t, adm, topo); len(changes) != 0 || wrong != nil {
		t.Errorf("a sound drained topic: plan %q, faults %q", lines(changes), wrong)
	}
	alter(t, adm, "webhooks.retry-1h", "retention.ms", "1000")
	if got := faults(t, adm, topo); len(got) != 1 || !strings.Contains(got[0], "webhooks.retry-1h has retention.ms=1000, shorter than the 2h") {
		t.Errorf("a drained topic that loses records: %q", got)
	}
	apply(t, adm, topo)
	if got := faults(t, adm, topo); got != nil {
		t.Errorf("after apply: %q", got)
	}
}

// A topic is there before every broker has heard of its leaders.
func TestApplyWaitsForLeaders(t *testing.T) {
	cluster, adm := startCluster(t)
	topo := newTopology(t, DefaultConfig())
	changes := plan(t, adm, topo)
	late := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topo.State(), Err: kerr.LeaderNotAvailable, Count: 2})
	if err := changes.Apply(t.Context(), adm, nil); err != nil {
		t.Fatal(err)
	}
	if late.Hits() != 2 {
		t.Errorf("Apply returned after %d answers without a leader, 2 were prepared", late.Hits())
	}
}

func TestLed(t *testing.T) {
	for _, test := range []struct {
		want       bool
		partitions kadm.PartitionDetails
	}{
		{true, kadm.PartitionDetails{0: {Leader: 0}, 1: {Leader: 2}}},
		{false, kadm.PartitionDetails{0: {Leader: 0}}},
		{false, kadm.PartitionDetails{0: {Leader: 0}, 1: {Leader: -1}}},
		{false, kadm.PartitionDetails{0: {Leader: 0}, 1: {Leader: 1, Err: kerr.LeaderNotAvailable}}},
	} {
		if got := led(kadm.TopicDetail{Partitions: test.partitions}, 2); got != test.want {
			t.Errorf("%+v: %v", test.partitions, got)
		}
	}
}

func TestApplyTellsWhatWasInTheWay(t *testing.T) {
	cluster, adm := startCluster(t)
	topo := newTopology(t, DefaultConfig())
	changes := plan(t, adm, topo)
	if _, err := adm.CreateTopic(t.Context(), 12, 3, nil, topo.Parked()); err != nil {
		t.Fatal(err)
	}
	done := 0
	err := changes.Apply(t.Context(), adm, func(Change) { done++ })
	if err == nil || !strings.Contains(err.Error(), "webhooks.parked: it exists by now; run `reenvio topics plan`") || done != 5 {
		t.Errorf("a topic that has come meanwhile: %d done, %v", done, err)
	}
	apply(t, adm, topo)

	alter(t, adm, topo.DLQ(), "retention.ms", "1000")
	changes = plan(t, adm, topo)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.IncrementalAlterConfigs}, Resource: topo.DLQ(), Err: kerr.PolicyViolation})
	err = changes.Apply(t.Context(), adm, nil)
	if !errors.Is(err, kerr.PolicyViolation) || !strings.Contains(err.Error(), "setting retention.ms=2592000000 of topic webhooks.dlq") {
		t.Errorf("a refused setting: %v", err)
	}

	err = plan(t, adm, newTopology(t, Config{Prefix: "more.", Partitions: 1, Replication: 4})).Apply(t.Context(), adm, nil)
	if !errors.Is(err, kerr.InvalidReplicationFactor) || !strings.Contains(err.Error(), "creating topic more.events") {
		t.Errorf("more copies than brokers: %v", err)
	}
}

func TestMissingRightsNameTheCommandThatPrintsThem(t *testing.T) {
	cluster, adm := startCluster(t)
	topo := newTopology(t, DefaultConfig())
	apply(t, adm, topo)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if _, err := Plan(t.Context(), adm, topo); err == nil || !strings.Contains(err.Error(), "reenvio acls") {
		t.Errorf("Plan: %v", err)
	}
	if err := Verify(t.Context(), adm, topo); err == nil || !strings.Contains(err.Error(), "reenvio acls") {
		t.Errorf("Verify: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Drained(ctx, adm, topo); !errors.Is(err, context.Canceled) {
		t.Errorf("Drained: %v", err)
	}
}
