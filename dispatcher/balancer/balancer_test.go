package balancer

import (
	"bytes"
	"maps"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMetadataIsDeterministic(t *testing.T) {
	current := map[string][]int32{"events": {0, 1}, "commands": {0, 1}, "retry-2s": {0, 1}, "retry-4s": {0, 1}}
	first := New().JoinGroupMetadata(oldTopics, current, 4)
	for range 50 {
		if !bytes.Equal(first, New().JoinGroupMetadata(oldTopics, maps.Clone(current), 4)) {
			t.Fatal("the same state gives other bytes, which begins a rebalance")
		}
	}
}

// What members say goes through Kafka's encoding to the leader, and the plan through it back.
func TestThroughTheProtocol(t *testing.T) {
	b := New()
	partitions := counts(oldTopics)
	whole := func(numbers ...int32) map[string][]int32 {
		m := map[string][]int32{}
		for _, topic := range oldTopics {
			m[topic] = numbers
		}
		return m
	}
	join := func(id string, current map[string][]int32, generation int32) kmsg.JoinGroupResponseMember {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.ProtocolMetadata = id, b.JoinGroupMetadata(oldTopics, current, generation)
		return m
	}
	mb, topics, err := b.MemberBalancer([]kmsg.JoinGroupResponseMember{
		join("a", whole(0, 1, 2, 3, 4, 5, 6, 7), 6),
		join("b", whole(0, 7, 8), 5), // stale where it says 0 and 7
		join("c", nil, -1),
	})
	if err != nil || len(topics) != len(oldTopics) {
		t.Fatal(topics, err)
	}
	into, err := mb.(kgo.GroupMemberBalancerOrError).BalanceOrError(partitions)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string][]int32{}
	for _, a := range into.IntoSyncAssignment() {
		if got[a.MemberID], err = b.ParseSyncAssignment(a.MemberAssignment); err != nil {
			t.Fatal(err)
		}
	}
	// a keeps 0 to 3; 4 to 7 are withheld from their new holders; 9 to 11 are free, and 8 is b's.
	want := map[string]map[string][]int32{"a": whole(0, 1, 2, 3), "b": whole(8), "c": whole(9, 10, 11)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestGarbageMetadataIsAnError(t *testing.T) {
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID, m.ProtocolMetadata = "a", []byte{0, 3, 0}
	if _, _, err := New().MemberBalancer([]kmsg.JoinGroupResponseMember{m}); err == nil {
		t.Error("half a metadata was read")
	}
}
