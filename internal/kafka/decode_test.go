package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// emptyBatch is what Apache Kafka leaves of a batch when compaction took all its records but its producer may still write.
func emptyBatch(first int64, lastDelta int32) []byte {
	b := kmsg.NewRecordBatch()
	b.FirstOffset, b.LastOffsetDelta = first, lastDelta
	b.PartitionLeaderEpoch, b.Magic, b.ProducerID = 0, 2, 7
	b.Length = 49 // of all that follows, without records
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func TestDecodePassesEmptyBatches(t *testing.T) {
	answer := kmsg.NewFetchResponseTopicPartition()
	answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = 20, 20, 0
	answer.RecordBatches = append(emptyBatch(3, 4), emptyBatch(10, 0)...)
	r := NewReader(nil, topic, 0, 5)
	batch, err := r.decode(&answer)
	if err != nil || len(batch.Records) != 0 || batch.Next != 11 {
		t.Errorf("%+v, %v", batch, err)
	}
}

// An answer that doesn't move the position must not become a busy loop of the caller.
func TestDecodeRefusesWhatGivesNoProgress(t *testing.T) {
	answer := kmsg.NewFetchResponseTopicPartition()
	answer.RecordBatches = emptyBatch(3, 1)
	if batch, err := NewReader(nil, topic, 0, 5).decode(&answer); err == nil {
		t.Errorf("records before the position: %+v", batch)
	}
	answer.RecordBatches = emptyBatch(5, 0)
	answer.RecordBatches[30]++ // in what the checksum covers
	if batch, err := NewReader(nil, topic, 0, 5).decode(&answer); err == nil {
		t.Errorf("a broken batch: %+v", batch)
	}
}

// With its quota used up, a client gets an answer without partitions.
func TestAnswerWithoutThePartition(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	r := NewReader(nil, topic, 3, 0)
	_, err := r.answer(resp)
	if err == nil || !passes(err) {
		t.Errorf("got %v: it must be asked again", err)
	}
}
