package crash_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// membership is what the group's coordinator says of it.
type membership struct {
	generation int32
	members    map[string]member // by instance id
}

type member struct {
	id      string // changes when it joins anew
	numbers []int32
}

// membership asks until the group is stable and has the members named, each with
// numbers.
func (w *world) membership(instances ...string) membership {
	w.t.Helper()
	var m membership
	w.until(fmt.Sprintf("waiting for a stable group of %v", instances), func() (ok bool, err error) {
		m, ok, err = w.describe()
		return ok && slices.Equal(slices.Sorted(maps.Keys(m.members)), instances), err
	})
	return m
}

func (w *world) describe() (membership, bool, error) {
	groups, err := kadm.NewClient(w.client).DescribeGroups(w.ctx, w.group)
	g := groups[w.group]
	if err = cmp.Or(err, g.Err); err != nil || g.State != "Stable" {
		return membership{}, false, err
	}
	m := membership{members: map[string]member{}}
	total := 0
	for _, x := range g.Members {
		assigned, ok := x.Assigned.AsConsumer()
		if !ok || x.InstanceID == nil {
			return membership{}, false, nil
		}
		var numbers []int32
		for _, t := range assigned.Topics {
			if t.Topic == w.topo.Events() {
				numbers = slices.Sorted(slices.Values(t.Partitions))
			}
		}
		if len(numbers) == 0 {
			return membership{}, false, nil
		}
		total += len(numbers)
		m.members[*x.InstanceID] = member{x.MemberID, numbers}
	}
	m.generation, err = w.generation(m)
	return m, total == int(w.topo.Partitions()) && m.generation >= 0, err
}

// generation finds out which one the group is in. Descriptions don't say, but a
// heartbeat is accepted in the right one only. -1: it has moved on meanwhile.
func (w *world) generation(m membership) (int32, error) {
	for instance, x := range m.members {
		for generation := range int32(1000) {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Group, req.MemberID, req.InstanceID, req.Generation = w.group, x.id, &instance, generation
			resp, err := req.RequestWith(w.ctx, w.client)
			if err != nil {
				return -1, err
			}
			switch err := kerr.ErrorForCode(resp.ErrorCode); {
			case err == nil:
				return generation, nil
			case !errors.Is(err, kerr.IllegalGeneration):
				return -1, nil
			}
		}
	}
	return -1, nil
}
