package overview

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
)

const (
	fetchBytes = 1 << 20
	// farAhead is a distance that is worth a new request instead of reading on.
	farAhead = 1_000
)

// budget bounds what is read of a partition.
type budget struct {
	records int
	bytes   int
}

// whole is for topics that are read to their end.
var whole = budget{records: -1, bytes: -1}

// share splits what is read of a topic in all over its partitions; each gets a little.
func share(all budget, partitions int) budget {
	return budget{records: max(all.records/partitions, 200), bytes: max(all.bytes/partitions, fetchBytes)}
}

func (b budget) spent(records, bytes int) bool {
	return b.records >= 0 && (records >= b.records || bytes >= b.bytes)
}

// scan hands over the committed records in the stretches, lowest first, until the budget is spent, and returns the stretches that are
// left. What lies behind an open transaction is left too: nobody can read it yet.
func (r *reader) scan(ctx context.Context, at place, parts []stretch, limit budget, fn func(*kgo.Record)) (left []stretch, err error) {
	parts = slices.Clone(parts) // it is cut in place
	records, bytes := 0, 0
	var from *kafka.Reader
	position := int64(-1)
	for len(parts) > 0 && !limit.spent(records, bytes) {
		if from == nil || parts[0].from > position+farAhead {
			position = parts[0].from
			from = kafka.NewReader(r.Client, at.topic, at.number, position)
		}
		batch, err := from.Next(ctx, 0, fetchBytes)
		if err != nil {
			return parts, err
		}
		if batch.Next <= position { // the end, or an open transaction
			return parts, nil
		}
		for _, rec := range batch.Records {
			bytes += len(rec.Key) + len(rec.Value)
			parts = cutBelow(parts, rec.Offset)
			if len(parts) > 0 && rec.Offset >= parts[0].from {
				fn(rec)
				records++
			}
		}
		position = batch.Next
		parts = cutBelow(parts, position)
	}
	return parts, nil
}

// cutBelow takes away what lies below an offset, in place.
func cutBelow(parts []stretch, offset int64) []stretch {
	for len(parts) > 0 && parts[0].to <= offset {
		parts = parts[1:]
	}
	if len(parts) > 0 && parts[0].from < offset {
		parts[0].from = offset
	}
	return parts
}
