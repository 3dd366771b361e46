package record

import "github.com/twmb/franz-go/pkg/kgo"

// Sizes that a record may have, as the topics' max.message.bytes set them.
const (
	// MaxEventBytes is the most on the events topic: 1 MiB.
	MaxEventBytes = 1 << 20
	// MaxNewEventBytes is the most that a producer of ours writes there: it leaves
	// room for what a redrive adds on the same topic, webhook-redrive (16 + 256) and
	// webhook-moved (13 + 280).
	MaxNewEventBytes = MaxEventBytes - 1<<10
	// MaxRecordBytes is the most on all other topics: 128 KiB more, for what we
	// write about an event.
	MaxRecordBytes = MaxEventBytes + 128<<10
)

// Size is the number of bytes that r takes in Kafka, alone in a batch and not
// compressed: never less than what the broker counts.
//
//	batch header                                              61
//	length, attributes, timestamp and offset deltas, number of headers
//	                                        5 + 1 + 10 + 5 + 5 = 26
//	key, value; each header's name and value: up to 5 for a length
func Size(r *kgo.Record) int {
	n := 61 + 26 + 5 + len(r.Key) + 5 + len(r.Value)
	for i := range r.Headers {
		n += headerSize(r.Headers[i])
	}
	return n
}

func headerSize(h kgo.RecordHeader) int {
	return 5 + len(h.Key) + 5 + len(h.Value)
}
