package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// numberOf is the partition number of a webhook on the clusters of these tests.
func numberOf(t *testing.T, webhook string) int32 {
	t.Helper()
	topo, err := topology.New(topology.Config{Prefix: "webhooks.", Partitions: 3, Replication: 1}, []time.Duration{2 * time.Second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return topo.PartitionFor(webhook)
}

// put writes a record as a dispatcher does, and returns its offset.
func put(t *testing.T, s *shell, topic, key string, value []byte) int64 {
	t.Helper()
	return produce(t, s, &kgo.Record{Topic: topic, Partition: numberOf(t, key), Key: []byte(key), Value: value})
}

func produce(t *testing.T, s *shell, r *kgo.Record) int64 {
	t.Helper()
	client := s.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return r.Offset
}

func putState(t *testing.T, s *shell, state record.State) {
	t.Helper()
	put(t, s, "webhooks.state", state.Webhook, state.Marshal())
}

// putParked writes a parked event, and returns its offset.
func putParked(t *testing.T, s *shell, webhook, id string, producedAt time.Time) int64 {
	t.Helper()
	r, err := record.NewEventRecord("webhooks.events", numberOf(t, webhook), record.Event{Webhook: webhook, ID: id, Type: "order.paid", CESource: "/test"})
	if err != nil {
		t.Fatal(err)
	}
	r.Timestamp = producedAt
	d, err := record.FromEvent(r)
	if err != nil {
		t.Fatal(err)
	}
	d.Attempts = 2
	return produce(t, s, d.ParkedRecord("webhooks.parked", numberOf(t, webhook), record.ParkPaused))
}
