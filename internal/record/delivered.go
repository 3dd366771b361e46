package record

import (
	"crypto/sha256"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// DeliveredID is the hash of one delivered event, as the delivered topic keeps it.
type DeliveredID [16]byte

// deliveredVersion is the first byte of a delivered record.
const deliveredVersion = 1

// MaxDeliveredIDs is the most that one delivered record holds: 1 MiB of ids,
// 128 KiB below the topic's limit.
const MaxDeliveredIDs = MaxEventBytes / len(DeliveredID{})

// HashDelivered is the identity by which a second copy of an event is told: its
// webhook, its id, and the run of its redrive ("<run>/<count>" or empty). None of
// the three can hold a NUL, so the joined text is unambiguous.
func HashDelivered(webhook, eventID, redrive string) DeliveredID {
	sum := sha256.Sum256([]byte(webhook + "\x00" + eventID + "\x00" + redriveRun(redrive)))
	return DeliveredID(sum[:len(DeliveredID{})])
}

// DeliveredRecord is a record of ids just delivered; with none it only moves the
// topic's end, which is how a cycle that commits nothing but offsets has a record
// to wait for. It has no key.
func DeliveredRecord(topic string, partition int32, ids []DeliveredID) *kgo.Record {
	value := make([]byte, 1, 1+len(ids)*len(DeliveredID{}))
	value[0] = deliveredVersion
	for i := range ids {
		value = append(value, ids[i][:]...)
	}
	return &kgo.Record{Topic: topic, Partition: partition, Value: value}
}

// ParseDelivered reads the value of a delivered record.
func ParseDelivered(value []byte) ([]DeliveredID, error) {
	const size = len(DeliveredID{})
	switch {
	case len(value) == 0:
		return nil, fmt.Errorf("reading delivered ids: the value is empty, want a version byte")
	case value[0] != deliveredVersion:
		return nil, fmt.Errorf("reading delivered ids: version %d, this build reads %d", value[0], deliveredVersion)
	case (len(value)-1)%size != 0:
		return nil, fmt.Errorf("reading delivered ids: %d bytes are no whole number of %d-byte ids", len(value)-1, size)
	}
	ids := make([]DeliveredID, (len(value)-1)/size)
	for i := range ids {
		copy(ids[i][:], value[1+i*size:])
	}
	return ids, nil
}
