// Package dlqconsumer is for those who look after dead letters: it lists them and finds single ones, straight from Kafka.
//
// It only reads. Only what is committed counts, so that nobody looks after a letter that an aborted transaction left behind. It needs
// little memory however many letters there are: a list is gathered as places, and the letters are read again one by one as they are
// handed over.
package dlqconsumer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// ErrNotFound says that there is no (committed) dead letter at a place, any more or yet.
var ErrNotFound = errors.New("there is no dead letter")

// Reader reads the dead letters of one set of topics. It keeps nothing between calls, and can be used by several goroutines.
type Reader struct {
	client *kgo.Client
	topo   *topology.Topology
}

// New makes a Reader. The client must not be a member of a group: this would make it wait for the group's own fetches.
func New(client *kgo.Client, topo *topology.Topology) *Reader {
	return &Reader{client: client, topo: topo}
}

// Filter picks dead letters; an empty field picks all.
type Filter struct {
	Webhook string
	Reason  record.DeathReason
	ID      string // of the event
}

// Validate refuses a reason that no dead letter can have and an id that no webhook can have: such a filter finds nothing, and its
// author would take that for an answer.
func (f Filter) Validate() error {
	if f.Reason != "" && !slices.Contains(record.DeathReasons(), f.Reason) {
		return fmt.Errorf("the reason %q does not exist; there are %v", f.Reason, record.DeathReasons())
	}
	if f.Webhook != "" {
		return record.ValidWebhookID(f.Webhook)
	}
	return nil
}

func (f Filter) match(l *record.DeadLetter) bool {
	return (f.Webhook == "" || f.Webhook == l.Webhook) && (f.Reason == "" || f.Reason == l.Reason) && (f.ID == "" || f.ID == l.ID)
}

// partitions are those in which letters that match can lie.
func (f Filter) partitions(topo *topology.Topology) []int32 {
	if f.Webhook != "" {
		return []int32{topo.PartitionFor(f.Webhook)}
	}
	all := make([]int32, topo.Partitions())
	for p := range all {
		all[p] = int32(p)
	}
	return all
}
