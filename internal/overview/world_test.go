package overview_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// world is a set of topics on the embedded broker, in a bubble, whose records and commits a test makes by hand.
type world struct {
	t       *testing.T
	cluster *kafkatest.Cluster
	topo    *topology.Topology
	group   string
	client  *kgo.Client
	admin   *kadm.Client
}

func inWorld(t *testing.T, numbers int32, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cluster: kafkatest.Virtual(t)}
		w.topo = w.cluster.Topology(t, numbers)
		w.group = w.topo.Prefix() + "dispatcher"
		w.cluster.CreateTopics(t, w.topo)
		opts, err := kafka.Options(w.cluster.Kafka(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		w.client = w.cluster.Client(t, append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		w.admin = kadm.NewClient(w.client)
		test(t, w)
	})
}

func (w *world) read() *overview.Overview {
	w.t.Helper()
	o, err := overview.Read(w.t.Context(), overview.Options{Client: w.client, Topology: w.topo, Group: w.group})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// events writes n events of a webhook, and returns the first one's offset.
func (w *world) events(webhook string, n int) int64 {
	w.t.Helper()
	var records []*kgo.Record
	for i := range n {
		r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{Webhook: webhook, ID: fmt.Sprintf("%s-%d", webhook, i), Type: "t", CESource: "/t", Value: []byte("{}")})
		if err != nil {
			w.t.Fatal(err)
		}
		records = append(records, r)
	}
	w.produce(records...)
	return records[0].Offset
}

// retry writes an event that waits in a delay topic.
func (w *world) retry(tier time.Duration, webhook string, due time.Time) {
	w.t.Helper()
	number := w.topo.PartitionFor(webhook)
	d := record.Delivery{Event: record.Event{Webhook: webhook, ID: "r"}, Attempts: 1, DueAt: record.At(due), ProducedAt: record.At(time.Now()), Source: record.Source{Topic: w.topo.Events(), Partition: number}}
	w.produce(d.RetryRecord(w.topo.Retry(tier), number))
}

func (w *world) state(s record.State) {
	w.t.Helper()
	w.produce(&kgo.Record{Topic: w.topo.State(), Partition: w.topo.PartitionFor(s.Webhook), Key: []byte(s.Webhook), Value: s.Marshal()})
}

func (w *world) numberState(number int32, s record.NumberState) {
	w.t.Helper()
	w.produce(&kgo.Record{Topic: w.topo.State(), Partition: number, Key: []byte(record.NumberKey), Value: s.Marshal()})
}

func (w *world) endpoint(e record.Endpoint) {
	w.t.Helper()
	w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Partition: w.topo.PartitionFor(e.ID), Key: []byte(e.ID), Value: e.Marshal()})
}

// commit commits an offset of the group, with metadata.
func (w *world) commit(topic string, number int32, at int64, metadata string) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: number, At: at, LeaderEpoch: -1, Metadata: metadata})
	responses, err := w.admin.CommitOffsets(w.t.Context(), w.group, offsets)
	if err == nil {
		err = responses.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// join makes a member of the group that gets numbers as a dispatcher does: the same partition of each topic. Kafka's range assignor does
// that for topics with equal subscriptions.
func (w *world) join(instance string, topics ...string) *kgo.Client {
	w.t.Helper()
	if topics == nil {
		topics = w.topo.Owned()
	}
	cl := w.cluster.Client(w.t, kgo.ConsumerGroup(w.group), kgo.InstanceID(instance), kgo.ConsumeTopics(topics...), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit())
	cl.PauseFetchTopics(topics...)
	go func() {
		for !cl.PollFetches(w.t.Context()).IsClientClosed() && w.t.Context().Err() == nil {
		}
	}()
	return cl
}

// deleteBelow takes away what lies below an offset of partition 0, as retention does.
func (w *world) deleteBelow(topic string, offset int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: offset})
	if _, err := w.admin.DeleteRecords(w.t.Context(), offsets); err != nil {
		w.t.Fatal(err)
	}
}

// webhookIn is a webhook of a number.
func (w *world) webhookIn(number int32) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("wh-%d", i); w.topo.PartitionFor(id) == number {
			return id
		}
	}
}
