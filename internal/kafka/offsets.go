package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a ListOffsets request takes instead of a time.
const (
	listEnd   = -1
	listStart = -2
)

// HighWatermark is the offset after the last record that all in-sync replicas have, open transactions included: whatever was acknowledged before the
// call lies below it. (The last stable offset would not do: it stands still behind an open transaction.)
func HighWatermark(ctx context.Context, cl *kgo.Client, topic string, partition int32) (int64, error) {
	return listOffset(ctx, cl, topic, partition, listEnd)
}

// StartOffset is the first offset that is still there.
func StartOffset(ctx context.Context, cl *kgo.Client, topic string, partition int32) (int64, error) {
	return listOffset(ctx, cl, topic, partition, listStart)
}

// OffsetAt is the offset of the first record with a timestamp at or after at, or the high watermark when there is none.
func OffsetAt(ctx context.Context, cl *kgo.Client, topic string, partition int32, at time.Time) (int64, error) {
	// The end first: a record that comes in between must not be skipped.
	end, err := HighWatermark(ctx, cl, topic, partition)
	if err != nil {
		return 0, err
	}
	offset, err := listOffset(ctx, cl, topic, partition, max(0, at.UnixMilli())) // negative times have a meaning of their own
	if err == nil && offset < 0 {
		return end, nil
	}
	return offset, err
}

// listOffset leaves finding the leader, and looking for it again, to kgo.
func listOffset(ctx context.Context, cl *kgo.Client, topic string, partition int32, at int64) (int64, error) {
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp = partition, at
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req := kmsg.NewPtrListOffsetsRequest() // isolation: read uncommitted
	req.Topics = append(req.Topics, rt)

	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, fmt.Errorf("listing offsets of %s/%d: %w", topic, partition, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if t.Topic == topic && p.Partition == partition {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return 0, fmt.Errorf("listing offsets of %s/%d: %w", topic, partition, err)
				}
				return p.Offset, nil
			}
		}
	}
	return 0, fmt.Errorf("listing offsets of %s/%d: the broker's answer leaves it out", topic, partition)
}
