package dispatcher

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// oneSet tells, in the group's leader, when members of the group work on another set
// of topics. The numbers are shared out over all members then, so that some of each
// set get no owner, and no member sees that anything is wrong:
//  1. A and B, of one set, own numbers 0 to 5 and 6 to 11.
//  2. C, of another set, joins with the same dispatcher.group. It is given 8 to 11 of
//     its own topics, which nobody else reads: 0 to 7 of them have no owner.
//  3. B is left with 4 to 7: 8 to 11 of the first set have none either.
type oneSet struct {
	kgo.GroupBalancer
	d *Dispatcher
}

// MemberBalancer is called in the leader before each plan.
func (b oneSet) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	for _, m := range members {
		var said kmsg.ConsumerMemberMetadata
		if said.ReadFrom(m.ProtocolMetadata) != nil || len(said.Topics) == 0 || slices.Contains(said.Topics, b.d.topo.Events()) {
			continue
		}
		instance := m.MemberID
		if m.InstanceID != nil {
			instance = *m.InstanceID
		}
		b.d.log.Error("the group has a member that works on another set of topics: numbers of both sets have no owner now; give each set its own dispatcher.group (default: <topics.prefix>dispatcher)",
			"group", b.d.cfg.Group, "prefix", b.d.topo.Prefix(), "member", instance, "its_prefix", prefixOf(said.Topics))
	}
	return b.GroupBalancer.MemberBalancer(members)
}

// prefixOf is what the names of a set of topics begin with.
func prefixOf(topics []string) string {
	for _, topic := range topics {
		if prefix, ok := strings.CutSuffix(topic, "events"); ok {
			return prefix
		}
	}
	return topics[0]
}
