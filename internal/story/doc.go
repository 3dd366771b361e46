// Package story tells what became of events, from Kafka alone: the attempt log of a webhook, and the story of one event through every topic it can
// be in.
//
// Whatever concerns a webhook lies in the partitions of its number, so only those are read, and only what is committed counts. What the answer
// holds is bounded by the answer, not by the topics: records are looked at one after the other, and only what belongs to it is kept.
//
// It only reads. It joins no group and commits nothing, and it refuses to guess: where the topics don't say how an event ended, neither does it.
package story

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/topology"
)

// Reader reads stories and logs of one set of topics. It keeps nothing between calls and can be used by several goroutines.
type Reader struct {
	client   *kgo.Client
	topo     *topology.Topology
	group    string
	progress Progress
}

// Progress is told how much of a partition has been read, in offsets, after each fetch.
type Progress func(topic string, partition int32, done, all int64)

// New makes a Reader. The client must not be a member of a group: this would make it wait for the group's own fetches. group is that of the
// dispatchers, whose commits say which records are done.
func New(client *kgo.Client, topo *topology.Topology, group string, progress Progress) *Reader {
	return &Reader{client: client, topo: topo, group: group, progress: progress}
}
