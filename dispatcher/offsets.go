package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/tracker"
)

// committedOffset is what the group has committed for one topic of a number.
type committedOffset struct {
	at    int64 // -1: nothing
	done  tracker.Set
	cycle cycleID // zero when the metadata is not ours (an operator has reset the offset)
}

// errUnstable: an open transaction holds the answer back (KIP-447).
var errUnstable = errors.New("an open transaction holds the group's offsets")

// fetchOffsets reads the committed offsets of a number's topics. stable waits for
// no transaction: it fails with errUnstable while one is open.
func (d *Dispatcher) fetchOffsets(ctx context.Context, p int32, stable bool) (map[string]committedOffset, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = d.cfg.Group
	for _, topic := range d.topics {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID = topic, d.topicIDs[topic]
		t.Partitions = []int32{p}
		group.Topics = append(group.Topics, t)
	}
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(ctx, d.plain)
	if err != nil {
		return nil, fmt.Errorf("fetching the offsets of number %d: %w", p, err)
	}
	if len(resp.Groups) != 1 {
		return nil, fmt.Errorf("fetching the offsets of number %d: the broker answered for %d groups", p, len(resp.Groups))
	}
	if err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("fetching the offsets of number %d: %w", p, err)
	}
	found := map[string]committedOffset{}
	for _, t := range resp.Groups[0].Topics {
		topic := t.Topic
		if topic == "" { // from v10 on a topic is named by its id
			topic = d.topicByID[t.TopicID]
		}
		for _, part := range t.Partitions {
			err := kerr.ErrorForCode(part.ErrorCode)
			if errors.Is(err, kerr.UnstableOffsetCommit) {
				return nil, errUnstable
			}
			if err != nil {
				return nil, fmt.Errorf("fetching the offset of %s/%d: %w", topic, p, err)
			}
			c := committedOffset{at: part.Offset}
			if part.Offset >= 0 && part.Metadata != nil && *part.Metadata != "" {
				c.cycle, c.done, err = tracker.Decode(*part.Metadata)
				if err != nil {
					d.log.Warn("metadata of a committed offset is not ours, all from the offset on counts as not yet done",
						"topic", topic, "number", p, "error", err)
					c.cycle, c.done = cycleID{}, tracker.Set{}
				}
			}
			found[topic] = c
		}
	}
	return found, nil
}

// addOffsets adds the group to the transaction: AddOffsetsToTxn, then
// TxnOffsetCommit, is right for both transaction versions of KIP-890.
func (t *transactor) addOffsets(ctx context.Context) error {
	return t.withProducer(ctx, func(id int64, epoch int16) error {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, id, epoch
		req.Group = t.d.cfg.Group
		resp, err := req.RequestWith(ctx, t.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}

func (t *transactor) commitOffsets(ctx context.Context, b *batch) error {
	topics := map[string]*kmsg.TxnOffsetCommitRequestTopic{}
	for _, p := range b.parts {
		for topic, snapshot := range p.offsets {
			metadata, err := tracker.Encode(b.id, snapshot.Done)
			if err != nil {
				return fmt.Errorf("encoding what is done of %s/%d: %w", topic, p.n.p, err)
			}
			rt := topics[topic]
			if rt == nil {
				rt = &kmsg.TxnOffsetCommitRequestTopic{}
				rt.Default()
				rt.Topic, rt.TopicID = topic, t.d.topicIDs[topic]
				topics[topic] = rt
			}
			part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset, part.Metadata = p.n.p, snapshot.Offset, &metadata
			rt.Partitions = append(rt.Partitions, part)
		}
	}
	return t.withProducer(ctx, func(id int64, epoch int16) error {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, id, epoch
		req.Group, req.Generation, req.MemberID, req.InstanceID = t.d.cfg.Group, b.generation, b.member, new(t.d.instance)
		for _, topic := range t.d.topics {
			if rt := topics[topic]; rt != nil {
				req.Topics = append(req.Topics, *rt)
			}
		}
		resp, err := req.RequestWith(ctx, t.client)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			for _, part := range rt.Partitions {
				if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// withProducer calls f with our producer id, again while the coordinator is still
// busy with our last transaction (CONCURRENT_TRANSACTIONS), which kgo's raw
// requests don't retry.
func (t *transactor) withProducer(ctx context.Context, f func(id int64, epoch int16) error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if err := t.sameProducer(ctx); err != nil {
			return err
		}
		err := f(t.producer.id, t.producer.epoch)
		if !errors.Is(err, kerr.ConcurrentTransactions) && !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
