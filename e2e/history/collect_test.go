package history_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/e2e/history"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// writer is a dispatcher's pen: it writes real records into real topics.
type writer struct {
	t    *testing.T
	cl   *kgo.Client
	topo *topology.Topology
	p    int32
}

// commit writes one transaction; abort writes one that never was.
func (w *writer) commit(records ...*kgo.Record) { w.transaction(kgo.TryCommit, records) }
func (w *writer) abort(records ...*kgo.Record)  { w.transaction(kgo.TryAbort, records) }

func (w *writer) transaction(end kgo.TransactionEndTry, records []*kgo.Record) {
	w.t.Helper()
	if err := w.cl.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.cl.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.cl.EndTransaction(w.t.Context(), end); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) attempt(a record.Attempt) *kgo.Record {
	return &kgo.Record{Topic: w.topo.Attempts(), Partition: w.p, Key: []byte(a.Webhook), Value: a.Marshal()}
}

func (w *writer) state(s record.State) *kgo.Record {
	return &kgo.Record{Topic: w.topo.State(), Partition: w.p, Key: []byte(s.Webhook), Value: s.Marshal()}
}

// TestCollect writes by hand what a dispatcher would for an event that is
// delivered at its second attempt and one that dies, and reads it back.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Virtual(t)
		topo := c.Topology(t, 2)
		c.CreateTopics(t, topo)
		cl := c.Client(t, kgo.TransactionalID("writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		w := &writer{t: t, cl: cl, topo: topo, p: topo.PartitionFor("hook")}

		var sent []history.Sent
		deliveries := map[string]*record.Delivery{}
		for _, id := range []string{"good", "bad"} {
			r, err := record.NewEventRecord(topo.Events(), w.p, record.Event{
				Webhook: "hook", ID: id, Type: "t", CESource: "s", PartitionKey: "key of " + id, Redrive: id + "/1", Value: []byte(id),
			})
			if err != nil {
				t.Fatal(err)
			}
			w.commit(r)
			sent = append(sent, history.Acknowledged(r))
			d, err := record.FromEvent(r)
			if err != nil {
				t.Fatal(err)
			}
			deliveries[id] = d
		}
		w.abort(&kgo.Record{Topic: topo.Events(), Partition: w.p, Key: []byte("hook"), Value: []byte("never")})

		start := time.Now()
		good, bad := deliveries["good"], deliveries["bad"]
		requests := []kafkatest.Request{
			{Webhook: "hook", EventID: "good", Attempt: 1, Start: start, End: start, Status: 500, Body: []byte("good")},
			{Webhook: "hook", EventID: "bad", Attempt: 1, Start: start, End: start, Status: 400, Body: []byte("bad")},
			{Webhook: "hook", EventID: "good", Attempt: 2, Start: start.Add(2 * time.Second), End: start.Add(2 * time.Second), Status: 200, Body: []byte("good")},
		}
		log := func(d *record.Delivery, n int, outcome record.Outcome, next record.Next, status int) record.Attempt {
			return record.Attempt{
				Webhook: "hook", EventID: d.ID, Attempt: n, Outcome: outcome, Next: next, Status: status, StartedAt: record.At(time.Now()),
				SourceTopic: d.Source.Topic, SourcePartition: d.Source.Partition, SourceOffset: d.Source.Offset, Dispatcher: "d",
			}
		}
		good.Attempts, good.DueAt = 1, record.At(start.Add(2*time.Second))
		first := log(good, 1, record.Failed, record.NextRetry, 500)
		first.NextAttemptAt = good.DueAt
		bad.Attempts = 1
		state := record.State{Webhook: "hook", ConsecutiveFailures: 2}
		w.commit(
			w.attempt(first), good.RetryRecord(topo.Retry(2*time.Second), w.p),
			w.attempt(log(bad, 1, record.Dead, record.NextNone, 400)),
			bad.DeadLetter(topo.DLQ(), w.p, record.Death{Reason: record.PermanentStatus, At: record.At(start)}),
			w.state(state),
			&kgo.Record{Topic: topo.State(), Partition: w.p, Key: []byte(record.NumberKey), Value: record.NumberState{}.Marshal()},
		)
		time.Sleep(time.Until(good.DueAt.Time))
		second := log(good, 2, record.Delivered, record.NextNone, 200)
		second.DueAt = good.DueAt
		w.commit(w.attempt(second), &kgo.Record{Topic: topo.State(), Partition: w.p, Key: []byte("hook")})
		w.commit(&kgo.Record{Topic: topo.Commands(), Partition: w.p, Key: []byte("hook"), Value: record.Command{ID: "c", Action: record.ActionPause}.Marshal()},
			&kgo.Record{Topic: topo.Commands(), Partition: w.p, Key: []byte("hook"), Value: record.Result{ID: "c", Result: record.ResultRefused}.Marshal()})
		var offsets kadm.Offsets
		offsets.AddOffset(topo.Events(), w.p, 7, -1)
		if err := kadm.NewClient(c.Client(t)).CommitAllOffsets(t.Context(), "dispatchers", offsets); err != nil {
			t.Fatal(err)
		}

		topics, err := history.Collect(t.Context(), c.Client(t), topo, "dispatchers")
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(len(topics.Events), len(topics.Waiting), len(topics.Dead), len(topics.Attempts), len(topics.States), len(topics.Acts), topics.Committed)
		want := fmt.Sprintf("2 1 1 3 2 2 map[{%s %d}:7]", topo.Events(), w.p)
		if got != want {
			t.Errorf("collected %s, want %s", got, want)
		}
		for _, e := range topics.Events {
			if e.PartitionKey != "key of "+e.ID || e.Redrive != e.ID+"/1" {
				t.Errorf("event %s has ordering key %q, redrive %q", e.ID, e.PartitionKey, e.Redrive)
			}
		}
		report := history.Check(history.History{Sent: sent, Requests: history.Received(requests), Topics: topics, Final: true})
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		if report.Events["delivered"] != 1 || report.Events["dead"] != 1 || report.Lateness.Count != 1 {
			t.Errorf("report: %s", report)
		}
	})
}
