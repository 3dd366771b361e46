package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Kafka's own topics: who leads a partition of theirs coordinates the groups, or the
// transactions, that belong to it.
const (
	groupsTopic       = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

// coordinator is the broker that coordinates the dispatchers' group, by its number; -1
// when none is found in time.
func (w *world) coordinator() int {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		found := kadm.NewClient(w.Client).FindGroupCoordinators(ctx, w.Group)
		if c, ok := found[w.Group]; ok && c.Err == nil {
			return int(c.NodeID)
		}
		w.rest(200 * time.Millisecond)
	}
	return -1
}

// moveLeaders makes other brokers the leaders of partitions: all of a topic, or of all
// topics one number.
func (w *world) moveLeaders(of func(topic string, partition int32) bool) error {
	ctx, cancel := context.WithTimeout(w.Ctx, patience)
	defer cancel()
	adm := kadm.NewClient(w.Client)
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return fmt.Errorf("finding the leaders: %w", err)
	}
	var assign kadm.AlterPartitionAssignmentsReq
	moved := kadm.TopicsSet{}
	topics.EachPartition(func(p kadm.PartitionDetail) {
		if i := slices.Index(p.Replicas, p.Leader); i >= 0 && of(p.Topic, p.Partition) {
			next := (i + 1) % len(p.Replicas)
			assign.Assign(p.Topic, p.Partition, slices.Concat(p.Replicas[next:], p.Replicas[:next]))
			moved.Add(p.Topic, p.Partition)
		}
	})
	if len(moved) == 0 {
		return fmt.Errorf("no partition has a leader that could be moved")
	}
	// The same replicas in another order: the first of them is to lead.
	assigned, err := adm.AlterPartitionAssignments(ctx, assign)
	if err == nil {
		err = assigned.Error()
	}
	if err != nil {
		return fmt.Errorf("naming other leaders: %w", err)
	}
	elected, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, moved)
	if err != nil {
		return fmt.Errorf("electing other leaders: %w", err)
	}
	for _, of := range elected {
		for _, p := range of {
			if p.Err != nil {
				return fmt.Errorf("electing another leader of %s/%d: %w", p.Topic, p.Partition, p.Err)
			}
		}
	}
	return nil
}
