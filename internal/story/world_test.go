package story_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
	"github.com/reenvio/reenvio/internal/topology"
	"github.com/reenvio/reenvio/internal/tracker"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

const (
	crm   = "crm"
	group = "dispatchers"
)

// world is a cluster on which the test writes what a dispatcher would.
type world struct {
	t      *testing.T
	topo   *topology.Topology
	number int32 // of crm
	client *kgo.Client
	writer *kgo.Client // transactional
	reader *story.Reader
	after  map[string]func() // what happens once a topic has been read
}

// bubble runs test with the embedded broker in a synctest bubble: waiting takes no time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := kafkatest.Virtual(t)
		w := &world{t: t, topo: cluster.Topology(t, 4), after: map[string]func(){}}
		cluster.CreateTopics(t, w.topo)
		w.number = w.topo.PartitionFor(crm)
		w.client = cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		w.writer = cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("writer"))
		w.reader = story.New(w.client, w.topo, group, func(topic string, _ int32, done, all int64) {
			if happens := w.after[topic]; happens != nil && done == all {
				delete(w.after, topic)
				happens()
			}
		})
		test(t, w)
	})
}

// write writes records, and returns them with the places where they lie.
func (w *world) write(records ...*kgo.Record) []*kgo.Record {
	w.t.Helper()
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	return records
}

// send writes an event and returns what a dispatcher makes of it.
func (w *world) send(webhook, id string, change ...func(*record.Event)) *record.Delivery {
	w.t.Helper()
	e := record.Event{Webhook: webhook, ID: id, Type: "order.paid", Value: []byte(`{"order":1}`)}
	for _, f := range change {
		f(&e)
	}
	r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), e)
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := record.FromEvent(w.write(r)[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// fail makes one more attempt of d that fails, to be tried again in 2 s.
func (w *world) fail(d *record.Delivery) {
	d.Attempts++
	d.LastAttemptAt, d.LastStatus = record.At(time.Now()), 500
	d.DueAt = record.At(time.Now().Add(2 * time.Second))
	w.attempt(d, func(a *record.Attempt) {
		a.Outcome, a.Next, a.Status, a.Error, a.NextAttemptAt = record.Failed, record.NextRetry, 500, "status", d.DueAt
	})
	time.Sleep(10 * time.Millisecond)
}

func (w *world) deliver(d *record.Delivery) {
	d.Attempts++
	d.LastAttemptAt = record.At(time.Now())
	w.attempt(d, func(a *record.Attempt) { a.Outcome, a.Next, a.Status = record.Delivered, record.NextNone, 200 })
}

func (w *world) attempt(d *record.Delivery, change func(*record.Attempt)) {
	w.t.Helper()
	a := record.Attempt{
		Webhook: d.Webhook, EventID: d.ID, EventType: d.Type, Attempt: d.Attempts, StartedAt: d.LastAttemptAt, DurationMS: 7, URLHost: "crm.example",
		ProducedAt: d.ProducedAt, SourceTopic: d.Source.Topic, SourcePartition: d.Source.Partition, SourceOffset: d.Source.Offset,
	}
	change(&a)
	w.write(&kgo.Record{Topic: w.topo.Attempts(), Partition: w.topo.PartitionFor(d.Webhook), Key: []byte(d.Webhook), Value: a.Marshal()})
}

func (w *world) retry(d *record.Delivery, tier time.Duration) *kgo.Record {
	return w.write(d.RetryRecord(w.topo.Retry(tier), w.number))[0]
}

func (w *world) park(d *record.Delivery, why record.ParkReason) *kgo.Record {
	return w.write(d.ParkedRecord(w.topo.Parked(), w.number, why))[0]
}

func (w *world) die(d *record.Delivery, why record.DeathReason) *kgo.Record {
	return w.write(d.DeadLetter(w.topo.DLQ(), w.number, record.Death{Reason: why, Message: "it answered 500", At: record.At(time.Now())}))[0]
}

// state writes the state of crm; nil is a tombstone.
func (w *world) state(s *record.State) {
	r := &kgo.Record{Topic: w.topo.State(), Partition: w.number, Key: []byte(crm)}
	if s != nil {
		s.Webhook = crm
		r.Value = s.Marshal()
	}
	w.write(r)
}

// commit commits, for crm's number, an offset of a topic with what is done beyond it: all that was received up to top, but for those in open.
func (w *world) commit(topic string, top int64, open ...int64) {
	w.t.Helper()
	tr := tracker.New(0, tracker.Set{})
	for offset := range top {
		tr.Received(offset)
	}
	for offset := range top {
		if !slices.Contains(open, offset) {
			tr.Complete(offset)
		}
	}
	snapshot := tr.Snapshot()
	metadata, err := tracker.Encode(tracker.CycleID{Instance: "a", Boot: "b", N: 1}, snapshot.Done)
	if err != nil {
		w.t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: w.number, At: snapshot.Offset, LeaderEpoch: -1, Metadata: metadata})
	if err := kadm.NewClient(w.client).CommitAllOffsets(w.t.Context(), group, offsets); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tell(id string) story.Story {
	w.t.Helper()
	return w.tellSince(id, time.Now().Add(-7*24*time.Hour))
}

func (w *world) tellSince(id string, since time.Time) story.Story {
	w.t.Helper()
	s, err := w.reader.Tell(w.t.Context(), crm, id, since)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// outline is a copy in one line: "waiting: queued attempt-1:failed waiting-1*".
func outline(c story.Copy) string {
	text := string(c.Status) + ":"
	for _, s := range c.Steps {
		text += " " + string(s.Kind)
		if s.Kind != story.StepQueued {
			text += fmt.Sprintf("-%d", s.Attempt)
		}
		if s.Outcome != "" {
			text += ":" + string(s.Outcome)
		}
		if s.Times > 1 {
			text += fmt.Sprintf("x%d", s.Times)
		}
		if s.Open {
			text += "*"
		}
	}
	return text
}

func (w *world) want(s story.Story, outlines ...string) {
	w.t.Helper()
	var got []string
	for _, c := range s.Copies {
		got = append(got, outline(c))
	}
	if fmt.Sprint(got) != fmt.Sprint(outlines) {
		w.t.Errorf("got\n%q\nwant\n%q", got, outlines)
	}
}
