package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The states of a group in which there is something to say of it for certain.
const (
	groupStable = "Stable"
	groupEmpty  = "Empty" // no members, but offsets
	groupDead   = "Dead"  // Kafka knows nothing of it
)

const (
	// settleTries and settlePause: a number that changes hands has no owner between two rebalances, for some milliseconds mostly. It
	// would be a false alarm.
	settleTries = 8
	settlePause = 250 * time.Millisecond
)

// group is who has which number.
type group struct {
	state   string
	members []Dispatcher
	owners  map[int32]int // index in members
}

func (g *group) moving() bool {
	return g.state != groupStable && g.state != groupEmpty && g.state != groupDead
}

func (g *group) owner(number int32) (Dispatcher, bool) {
	i, ok := g.owners[number]
	if !ok {
		return Dispatcher{}, false
	}
	return g.members[i], true
}

// settled looks at the group until it stands still, or for 2 s.
func (r *reader) settled(ctx context.Context) (group, error) {
	for try := 1; ; try++ {
		g, err := r.describe(ctx)
		if err != nil {
			return group{}, err
		}
		if len(g.members) == 0 && !g.moving() || len(g.owners) == int(r.topo.Partitions()) || try == settleTries {
			return g, nil
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return group{}, ctx.Err()
		}
	}
}

func (r *reader) describe(ctx context.Context) (group, error) {
	var d kadm.DescribedGroup
	err := patiently(ctx, func() error {
		described, err := r.admin.DescribeGroups(ctx, r.Group)
		d = described[r.Group]
		return cmp.Or(err, d.Err)
	})
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		d.State = groupDead
	case err != nil:
		return group{}, fmt.Errorf("describing the group %s: %w", r.Group, err)
	}
	g := group{state: d.State, members: []Dispatcher{}, owners: map[int32]int{}}
	for _, m := range d.Members {
		member := Dispatcher{Instance: instanceOf(m), Host: hostOf(m), MemberID: m.MemberID, Numbers: []int32{}}
		for _, number := range r.numbersOf(m) {
			member.Numbers = append(member.Numbers, number)
			g.owners[number] = len(g.members)
		}
		g.members = append(g.members, member)
	}
	return g, nil
}

// patience is how long the group's coordinator is waited for, beside what the client does by itself: after the loss of a broker another one
// needs some seconds to take over, and until a cluster has seen its first group there is none.
const patience = 15 * time.Second

// patiently asks again while the answer may pass.
func patiently(ctx context.Context, ask func() error) error {
	giveUp := time.Now().Add(patience)
	for {
		err := ask()
		if !passes(err) || time.Now().After(giveUp) {
			return err
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		}
	}
}

func passes(err error) bool {
	if sharded, ok := errors.AsType[*kadm.ShardErrors](err); ok { // one of them tells
		for _, shard := range sharded.Errs {
			if passes(shard.Err) {
				return true
			}
		}
		return false
	}
	answer, ok := errors.AsType[*kerr.Error](err)
	return ok && answer.Retriable
}

func instanceOf(m kadm.DescribedGroupMember) string {
	if m.InstanceID != nil {
		return *m.InstanceID
	}
	return cmp.Or(m.ClientID, m.MemberID) // no dispatcher of ours: they all have an instance id
}

// hostOf is without the slash that Kafka writes before an address, and without a port.
func hostOf(m kadm.DescribedGroupMember) string {
	host := strings.TrimPrefix(m.ClientHost, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// numbersOf are the numbers that a member has: a number of which it has the events but not the commands does not run.
func (r *reader) numbersOf(m kadm.DescribedGroupMember) []int32 {
	assigned, ok := m.Assigned.AsConsumer()
	if !ok {
		return nil
	}
	parts := map[string][]int32{}
	for _, t := range assigned.Topics {
		parts[t.Topic] = t.Partitions
	}
	var numbers []int32
	for _, p := range parts[r.topo.Events()] {
		if slices.Contains(parts[r.topo.Commands()], p) {
			numbers = append(numbers, p)
		}
	}
	slices.Sort(numbers)
	return numbers
}
