package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leader is where a partition is read. The epoch goes into the request: a broker that was the leader and has not heard of its successor would answer
// without what was written since; with an epoch beyond its own it refuses.
type leader struct {
	broker, epoch int32
	topicID       [16]byte
}

// fetch is one request and its answer, at the reader's position, which it does not move (but for resolving Earliest).
func (r *Reader) fetch(ctx context.Context, maxWait time.Duration, maxBytes int32) (Batch, error) {
	if r.next < 0 {
		start, err := StartOffset(ctx, r.cl, r.topic, r.partition)
		if err != nil {
			return Batch{}, err
		}
		r.next = start
	}
	if r.at == nil {
		at, err := lookUp(ctx, r.cl, r.topic, r.partition, r.stale)
		r.stale = true // until an answer shows that it was right
		if err != nil {
			return Batch{}, err
		}
		r.at = &at
	}
	resp, err := r.cl.Broker(int(r.at.broker)).Request(ctx, r.request(maxWait, maxBytes))
	if err != nil {
		return Batch{}, fmt.Errorf("asking broker %d: %w", r.at.broker, err)
	}
	answer, err := r.answer(resp.(*kmsg.FetchResponse))
	if err != nil {
		return Batch{}, err
	}
	r.stale = false
	return r.decode(answer)
}

// request has no fetch session: each answer stands alone, and readers come and go.
func (r *Reader) request(maxWait time.Duration, maxBytes int32) *kmsg.FetchRequest {
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition = r.partition
	rp.FetchOffset = r.next
	rp.CurrentLeaderEpoch = r.at.epoch
	rp.PartitionMaxBytes = maxBytes
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = r.topic, r.at.topicID // by name up to version 12, by id from 13 on
	rt.Partitions = append(rt.Partitions, rp)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(maxWait.Milliseconds())
	req.MinBytes = 1
	// The bound is the partition's. A request's own, when it is what cuts an answer short, makes kfake leave the aborted transactions out of it, and
	// their records would pass for committed.
	req.MaxBytes = math.MaxInt32
	req.IsolationLevel = 1 // read committed
	req.Topics = append(req.Topics, rt)
	return req
}

// answer finds the one partition that was asked for. A broker whose quota is used up leaves it out.
func (r *Reader) answer(resp *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	for _, rt := range resp.Topics {
		for i, rp := range rt.Partitions {
			if rp.Partition == r.partition {
				return &rt.Partitions[i], kerr.ErrorForCode(rp.ErrorCode)
			}
		}
	}
	return nil, errors.New("the broker's answer leaves the partition out")
}

var decompressor = kgo.DefaultDecompressor()

// decode leaves to kgo what belongs to whom: it drops control records and what was aborted, and tells the offset after the last batch, whatever
// was in it.
func (r *Reader) decode(answer *kmsg.FetchResponseTopicPartition) (Batch, error) {
	part, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         r.next,
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          r.topic,
		Partition:      r.partition,
	}, answer, decompressor, nil)
	if part.Err != nil {
		return Batch{}, part.Err
	}
	if next == r.next && len(answer.RecordBatches) > 0 {
		return Batch{}, errors.New("the broker's answer has records, but none at or after the offset that was asked for")
	}
	return Batch{
		Records:       part.Records,
		Next:          next,
		HighWatermark: part.HighWatermark,
		LastStable:    part.LastStableOffset,
		LogStart:      part.LogStartOffset,
		Reset:         r.reset,
	}, nil
}

// A leader that moved since is told by the old one, so cached metadata may be old; not so after an answer that doubts it.
const (
	metadataAge = time.Minute
	doubtedAge  = 10 * time.Millisecond // less than any backoff; shares one request among readers that fail together
)

func lookUp(ctx context.Context, cl *kgo.Client, topic string, partition int32, doubted bool) (leader, error) {
	age := metadataAge
	if doubted {
		age = doubtedAge
	}
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, rt)
	resp, err := cl.RequestCachedMetadata(ctx, req, age)
	if err != nil {
		return leader{}, fmt.Errorf("looking up the leader: %w", err)
	}
	for _, t := range resp.Topics {
		if t.Topic == nil || *t.Topic != topic {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return leader{}, fmt.Errorf("looking up the leader: %w", err)
		}
		for _, p := range t.Partitions {
			if p.Partition == partition && p.Leader >= 0 {
				return leader{p.Leader, p.LeaderEpoch, t.TopicID}, nil
			}
		}
	}
	return leader{}, fmt.Errorf("looking up the leader: %w", kerr.LeaderNotAvailable)
}
