// Package dlqconsumer is for those who look after dead letters: it lists and counts them, finds single ones, and sends their events
// again, straight from Kafka and back.
//
// Only what is committed counts, so that nobody looks after a letter that an aborted transaction left behind. Letters are read and
// handed over one by one, however many there are; what is kept of each is a place. Dead letters are never changed or taken away: an
// event that is sent again is a new record of the events topic.
//
// It refuses to send again what nobody chose: a redrive without a filter.
package dlqconsumer

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

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

// Progress is told from time to time how far a part of the work, called what, has come. Both numbers are records, or places of records
// (markers of transactions lie between them).
type Progress func(what string, done, total int64)
