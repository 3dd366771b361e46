package record

import "github.com/twmb/franz-go/pkg/kgo"

// Delivery is one event on its way, and what has happened to it so far.
type Delivery struct {
	Event
	// Key is the record's key as it came: it is what is written again, also when it
	// is no legal webhook id. Nil stays nil.
	Key []byte
	// Source is the place of the event's record on the events topic, in the right
	// partition: the same in every topic it passes. See First for the one before a move.
	Source Source
	// ProducedAt is the timestamp of the event's record.
	ProducedAt Time
	// Attempts made so far.
	Attempts int
	// DueAt is when the next attempt may start; zero is at once.
	DueAt Time
	// FirstAttemptAt and LastAttemptAt are when attempts started; zero before the first.
	FirstAttemptAt, LastAttemptAt Time
	// LastStatus is the HTTP status of the last attempt, 0 without an answer.
	LastStatus int
	// LastError is text of any kind here; it is escaped and cut when written.
	LastError string
	// Parked is why the record lies in the parked topic; empty elsewhere.
	Parked ParkReason
	// Repaired names the headers of ours that were missing or unreadable in a
	// waiting record and were replaced by a safe value: worth a log line.
	Repaired []string
}

// ParkReason is why an event is held back, from a closed set.
type ParkReason string

// The reasons to park.
const (
	ParkPaused   ParkReason = "paused"   // its webhook is paused
	ParkOverflow ParkReason = "overflow" // its lane is full
	ParkBehind   ParkReason = "behind"   // it holds its partition's offset back too far
	ParkHold     ParkReason = "hold"     // its webhook is held until a time
	ParkConfig   ParkReason = "config"   // its webhook's configuration can't be used
)

func (r ParkReason) known() bool {
	switch r {
	case ParkPaused, ParkOverflow, ParkBehind, ParkHold, ParkConfig:
		return true
	}
	return false
}

// First is the place of the event's very first record: before it was moved to
// its right partition, where it was.
func (d *Delivery) First() Source {
	if d.Moved != nil {
		return *d.Moved
	}
	return d.Source
}

// Size is what the delivery holds in memory beside fixed fields: key, value and
// headers, in bytes. Bounds of queues count it.
func (d *Delivery) Size() int {
	n := len(d.Key) + len(d.Value)
	for i := range d.Headers {
		n += len(d.Headers[i].Key) + len(d.Headers[i].Value)
	}
	return n
}

// keyBytes is the key to write: as it came, else the webhook's id.
func (d *Delivery) keyBytes() []byte {
	if d.Key == nil && d.Webhook != "" {
		return []byte(d.Webhook)
	}
	return d.Key
}

// record is the event's own record, to the partition given, with our headers
// behind its own. The timestamp is left for the client to stamp.
func (d *Delivery) record(topic string, partition int32, own []kgo.RecordHeader, ours list) *kgo.Record {
	headers := make([]kgo.RecordHeader, 0, len(own)+len(ours))
	headers = append(append(headers, own...), ours...)
	return &kgo.Record{Topic: topic, Partition: partition, Key: d.keyBytes(), Value: d.Value, Headers: headers}
}
