package overview_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/tracker"
)

// What is beyond the bound is counted by offsets, markers included, and said to be so.
func TestBeyondABoundOffsetsAreCounted(t *testing.T) {
	overview.LowBudget(t)
	inWorld(t, 1, func(t *testing.T, w *world) {
		due := record.At(time.Now().Add(time.Minute))
		for range 3 { // several batches of 150: one look takes whole batches
			var records []*kgo.Record
			for range 150 {
				d := record.Delivery{Event: record.Event{Webhook: "a", ID: "x"}, DueAt: due, Source: record.Source{Topic: w.topo.Events()}}
				records = append(records, d.RetryRecord(w.topo.Retry(2*time.Second), 0), d.DeadLetter(w.topo.DLQ(), 0, record.Death{Reason: record.Expired, At: record.At(time.Now())}))
			}
			w.produce(records...)
		}
		w.events("a", 450)
		o := w.read()
		if o.Backlog != 450 || o.RetryTiers[0].Waiting != 450 || o.DeadLastHour != 450 {
			t.Errorf("got %d, %+v, %d", o.Backlog, o.RetryTiers[0], o.DeadLastHour)
		}
		if !o.DeadIsBound || len(o.DeadByReason) != 1 || o.DeadByReason[0].Count >= 450 {
			t.Errorf("all dead letters were read: %+v", o.DeadByReason)
		}
		var noted int
		for _, n := range o.Notes {
			if strings.Contains(n, w.topo.DLQ()+": more than 200 records") {
				noted++
			}
		}
		if noted != 1 || !strings.Contains(o.Headline, "at most 450 dead") {
			t.Errorf("notes %q, %s", o.Notes, o.Headline)
		}
		valid(t, o)
	})
}

// An open transaction must make nobody wait, and what it hides is not said to be there.
func TestOpenTransactions(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		writer := w.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("t"))
		if err := writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		d := record.Delivery{Event: record.Event{Webhook: "a", ID: "x"}, DueAt: record.At(time.Now().Add(time.Minute)), Source: record.Source{Topic: w.topo.Events()}}
		state := record.State{Webhook: "a", ConsecutiveFailures: 1, Version: 1}
		if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: w.topo.Events(), Key: []byte("a")}, d.RetryRecord(w.topo.Retry(2*time.Second), 0),
			d.DeadLetter(w.topo.DLQ(), 0, record.Death{Reason: record.Expired, At: record.At(time.Now())}),
			&kgo.Record{Topic: w.topo.State(), Key: []byte("a"), Value: state.Marshal()}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.events("a", 2)
		w.join("one")
		w.until(func(o *overview.Overview) bool { return o.OwnedNumbers == 1 })
		began := time.Now()
		o := w.read()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		n := o.Numbers[0]
		if n.Backlog != 3 || !n.BacklogIsBound || n.IncompleteReason != overview.OpenTransaction || n.IncompleteOffset != 0 || o.RetryTiers[0].Waiting != 0 || o.DeadLastHour != 0 {
			t.Errorf("got %+v, %+v, %d", n, o.RetryTiers[0], o.DeadLastHour)
		}
		if err := writer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		o = w.read()
		if n := o.Numbers[0]; n.Backlog != 3 || n.BacklogIsBound || n.IncompleteReason != overview.InFlight || o.RetryTiers[0].Waiting != 1 || o.DeadLastHour != 1 {
			t.Errorf("got %+v, %+v, %d", n, o.RetryTiers[0], o.DeadLastHour)
		}
	})
}

// Only markers are left of what was not done: there is no backlog, though there are offsets.
func TestMarkersAreNoBacklog(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		writer := w.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("t"))
		for range 3 {
			if err := writer.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: w.topo.Events(), Key: []byte("a")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := writer.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.read().Numbers[0]; n.Backlog != 0 || n.IncompleteReason != "" || n.IncompleteOffset != 6 {
			t.Errorf("got %+v", n)
		}
	})
}

// A done stretch that is long is jumped over, one that is short is read through: the figures are the same.
func TestFarApart(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		w.events("a", 3_000)
		tr := tracker.New(0, tracker.Set{})
		for offset := range int64(3_000) {
			tr.Received(offset)
			if offset != 3 && offset != 5 && offset != 2_500 && offset < 2_998 {
				tr.Complete(offset)
			}
		}
		metadata, err := tracker.Encode(tracker.CycleID{}, tr.Snapshot().Done)
		if err != nil {
			t.Fatal(err)
		}
		w.commit(w.topo.Events(), 0, 3, metadata)
		if n := w.read().Numbers[0]; n.Backlog != 5 || n.BacklogIsBound || n.IncompleteOffset != 3 {
			t.Errorf("got %+v", n)
		}
	})
}

// The group's coordinator is away for some seconds when a broker has died: that is waited for, and not for ever.
func TestACoordinatorThatIsAway(t *testing.T) {
	for away, wait := range map[int]bool{3: true, 1_000: false} {
		inWorld(t, 1, func(t *testing.T, w *world) {
			w.join("one")
			w.until(func(o *overview.Overview) bool { return o.OwnedNumbers == 1 })
			w.cluster.Fake.ControlKey(int16(kmsg.DescribeGroups), func(k kmsg.Request) (kmsg.Response, error, bool) {
				if away--; away < 0 {
					return nil, nil, false
				}
				w.cluster.Fake.KeepControl()
				answer := k.ResponseKind().(*kmsg.DescribeGroupsResponse)
				g := kmsg.NewDescribeGroupsResponseGroup()
				g.Group, g.ErrorCode = w.group, kerr.CoordinatorNotAvailable.Code
				answer.Groups = append(answer.Groups, g)
				return answer, nil, true
			})
			began := time.Now()
			o, err := overview.Read(t.Context(), overview.Options{Client: w.client, Topology: w.topo, Group: w.group})
			took := time.Since(began)
			if wait && (err != nil || o.OwnedNumbers != 1) {
				t.Errorf("got %+v, %v", o, err)
			}
			if !wait && (!errors.Is(err, kerr.CoordinatorNotAvailable) || took > 90*time.Second) { // a minute of it is the client's own
				t.Errorf("got %v after %v", err, took)
			}
		})
	}
}
