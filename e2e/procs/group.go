package procs

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

// Membership is what the group's coordinator says of it.
type Membership struct {
	Generation int32
	Members    map[string]Member // by instance id
}

// Member is one dispatcher in the group.
type Member struct {
	ID      string // changes when it joins anew
	Numbers []int32
}

// Membership asks until the group is stable and has the members named, each with
// numbers.
func (w *World) Membership(instances ...string) Membership {
	w.T.Helper()
	var m Membership
	w.Until(fmt.Sprintf("waiting for a stable group of %v", instances), func() (ok bool, err error) {
		m, ok, err = w.describe()
		return ok && slices.Equal(slices.Sorted(maps.Keys(m.Members)), instances), err
	})
	return m
}

func (w *World) describe() (Membership, bool, error) {
	groups, err := kadm.NewClient(w.Client).DescribeGroups(w.Ctx, w.Group)
	g := groups[w.Group]
	if err = cmp.Or(err, g.Err); err != nil || g.State != "Stable" {
		return Membership{}, false, err
	}
	m := Membership{Members: map[string]Member{}}
	total := 0
	for _, x := range g.Members {
		assigned, ok := x.Assigned.AsConsumer()
		if !ok || x.InstanceID == nil {
			return Membership{}, false, nil
		}
		var numbers []int32
		for _, t := range assigned.Topics {
			if t.Topic == w.Topo.Events() {
				numbers = slices.Sorted(slices.Values(t.Partitions))
			}
		}
		if len(numbers) == 0 {
			return Membership{}, false, nil
		}
		total += len(numbers)
		m.Members[*x.InstanceID] = Member{x.MemberID, numbers}
	}
	m.Generation, err = w.generation(m)
	return m, total == int(w.Topo.Partitions()) && m.Generation >= 0, err
}

// generation finds out which one the group is in. Descriptions don't say, but a
// heartbeat is accepted in the right one only. -1: it has moved on meanwhile.
func (w *World) generation(m Membership) (int32, error) {
	for instance, x := range m.Members {
		for generation := range int32(1000) {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Group, req.MemberID, req.InstanceID, req.Generation = w.Group, x.ID, &instance, generation
			resp, err := req.RequestWith(w.Ctx, w.Client)
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
