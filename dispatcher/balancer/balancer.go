// Package balancer assigns partition numbers to the members of a consumer group: whoever gets number p gets partition p
// of every topic. Kafka's own assignors deal in single partitions and tear numbers apart.
//
// It is the client's half of a cooperative group (KIP-429): each member says what it holds, the leader plans, a member
// releases what the plan does not leave it and joins again, and only then is that given to another.
//
// It keeps no state and has no options: a plan follows from the members and the partition counts alone. It does not know
// which numbers are busy, nor who holds one in truth: that a member which was cut off has fallen silent before its numbers
// go to another is the business of leases, not of plans.
package balancer

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Name is that of the group protocol. All members must have the same one, so it stands for the rules of plan.go too: rules
// that make another plan from the same claims would need another name.
const Name = "reenvio-numbers"

// New makes the balancer, for kgo.Balancers. It must be the group's only one.
func New() kgo.GroupBalancer { return balancer{} }

type balancer struct{}

func (balancer) ProtocolName() string { return Name }

func (balancer) IsCooperative() bool { return true }

// JoinGroupMetadata tells the leader what this member subscribes to, what it holds, and in which generation it learnt so.
func (balancer) JoinGroupMetadata(interests []string, current map[string][]int32, generation int32) []byte {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version = 3
	meta.Topics = interests
	meta.Generation = generation
	for topic, partitions := range current {
		owned := kmsg.NewConsumerMemberMetadataOwnedPartition()
		owned.Topic, owned.Partitions = topic, partitions
		meta.OwnedPartitions = append(meta.OwnedPartitions, owned)
	}
	// Kafka begins a rebalance when the bytes differ from those of the last join, so they must not differ by chance.
	slices.SortFunc(meta.OwnedPartitions, func(a, b kmsg.ConsumerMemberMetadataOwnedPartition) int {
		return strings.Compare(a.Topic, b.Topic)
	})
	return meta.AppendTo(nil)
}

func (balancer) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	return kgo.ParseConsumerSyncAssignment(assignment)
}

func (b balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	cb, err := kgo.NewConsumerBalancer(b, members)
	return cb, cb.MemberTopics(), err
}

// Balance is called in the leader only. Members come sorted by instance id, so that a restarted one, which has a new member
// id, stands where it stood before.
func (balancer) Balance(cb *kgo.ConsumerBalancer, partitions map[string]int32) kgo.IntoSyncAssignment {
	var members []member
	cb.EachMember(func(_ *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		m := member{topics: meta.Topics, generation: meta.Generation}
		for _, owned := range meta.OwnedPartitions {
			m.claims = append(m.claims, owned.Partitions...)
		}
		members = append(members, m)
	})
	plan := cb.NewPlan()
	for i, numbers := range assign(members, partitions) {
		to, _ := cb.MemberAt(i)
		for _, topic := range members[i].topics {
			for _, p := range numbers {
				if p < partitions[topic] {
					plan.AddPartition(to, topic, p)
				}
			}
		}
	}
	return plan
}
