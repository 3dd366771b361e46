package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A record that can never be delivered dies with its reason, its bytes as they
// were, and does not stop its partition.
func TestRecordsThatCannotBeDelivered(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		change func(r *kgo.Record)
		says   string
	}{
		"no key":             {func(r *kgo.Record) { r.Key = nil }, "no key"},
		"an empty key":       {func(r *kgo.Record) { r.Key = []byte{} }, "empty"},
		"a key of no id":     {func(r *kgo.Record) { r.Key = []byte("a b") }, "0x20"},
		"a key of 300 bytes": {func(r *kgo.Record) { r.Key = []byte(long) }, "300 bytes"},
		"an id of 300 bytes": {func(r *kgo.Record) { setHeader(r, "ce_id", long) }, "300 bytes"},
		"an id with a space": {func(r *kgo.Record) { setHeader(r, "ce_id", "a b") }, "0x20"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.webhook("w")
				a := w.start("a")
				a.owns(0)
				r := w.event("w", 0)
				c.change(r)
				w.produce(r)
				w.send("w", 1, 1)
				w.until("the next is delivered", func() bool { return len(w.delivered("w")) == 1 })
				a.quiesce()
				dead := w.dead()
				if len(dead) != 1 {
					t.Fatalf("%d dead letters, want 1", len(dead))
				}
				d := dead[0]
				if d.Reason != record.InvalidRecord || !strings.Contains(d.Message, c.says) {
					t.Errorf("it died as %s: %q, want %q in it", d.Reason, d.Message, c.says)
				}
				if string(d.Key) != string(r.Key) || string(d.Value) != string(r.Value) || d.Attempts != 0 {
					t.Errorf("key %q, value %q, %d attempts", d.Key, d.Value, d.Attempts)
				}
				mustEqual(t, "sent", ids(w.receiver.Requests()), eventIDs("w", 1, 1))
			})
		})
	}
}

func setHeader(r *kgo.Record, key, value string) {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			r.Headers[i].Value = []byte(value)
			return
		}
	}
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
}

func dropHeader(r *kgo.Record, key string) {
	var kept []kgo.RecordHeader
	for _, h := range r.Headers {
		if h.Key != key {
			kept = append(kept, h)
		}
	}
	r.Headers = kept
}

// An event without an id is delivered with a derived one, the same at each attempt, and counted.
func TestEventWithoutID(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(2), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		r := w.event("w", 0)
		dropHeader(r, "ce_id")
		w.produce(r)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		all := ids(w.receiver.Of("w"))
		if len(all) != 3 || !strings.HasPrefix(all[0], "evt_") || all[1] != all[0] || all[2] != all[0] {
			t.Errorf("sent with the ids %v, want one derived id", all)
		}
		if n := a.metric("events_without_id_total"); n != 1 {
			t.Errorf("%v are counted, want 1", n)
		}
	})
}

// One that is moved to its right partition besides is counted once.
func TestEventWithoutIDInTheWrongPartition(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		id := w.onEach(2)[1]
		a := w.start("a")
		a.owns(0, 1)
		r := w.event(id, 0)
		r.Partition = 0
		dropHeader(r, "ce_id")
		w.produce(r)
		w.until("it is delivered", func() bool { return len(w.delivered(id)) == 1 })
		if n := a.metric("events_without_id_total"); n != 1 {
			t.Errorf("%v are counted, want 1", n)
		}
	})
}

// A producer's clock may say anything: events of 1970 and of 2100 are delivered and retried like others, and the latency
// of none is negative.
func TestOddTimestamps(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		for i, at := range []time.Time{time.UnixMilli(1), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
			began := time.Now()
			r := w.event("w", i)
			r.Timestamp = at
			w.produce(r)
			w.until("it is delivered", func() bool { return len(w.delivered("w")) == i+1 })
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("one of %s took %s", at, took)
			}
			for _, got := range w.attempts("w")[2*i:] {
				if !got.ProducedAt.Equal(at) {
					t.Errorf("produced at %s on record, want %s", got.ProducedAt, at)
				}
			}
			since1970 := time.Since(time.UnixMilli(0)).Seconds()
			if got := a.sum("delivery_latency_seconds"); got < since1970-60 || got > since1970 {
				t.Errorf("a latency of %v s in all, want the %v since 1970 and none since 2100", got, since1970)
			}
		}
	})
}

// sum is that of all that a histogram has seen.
func (p *process) sum(name string) float64 {
	p.w.t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		p.w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == namespace+"_"+name {
			return f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return 0
}

// A null value is an event without data: an empty body, and null in every topic.
func TestNullValue(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.MaxAttempts = 2 })
		a := w.start("a")
		a.owns(0)
		r := w.event("w", 0)
		r.Value = nil
		w.produce(r)
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		for _, q := range w.receiver.Of("w") {
			if len(q.Body) != 0 {
				t.Errorf("sent with the body %q", q.Body)
			}
		}
		if got := len(w.receiver.Of("w")); got != 2 {
			t.Errorf("%d requests, want 2", got)
		}
		for _, d := range append(w.retries("w"), &w.dead()[0].Delivery) {
			if d.Value != nil {
				t.Errorf("the null value became %q", d.Value)
			}
		}
	})
}

// A record in the wrong partition for its key is moved, once, by whoever owns that one.
func TestWrongPartition(t *testing.T) {
	inWorld(t, 3, kafkatest.Always(200), func(t *testing.T, w *world) {
		webhooks := w.onEach(3)
		a, b := w.start("a"), w.start("b")
		r := w.event(webhooks[1], 0)
		r.Partition = 2
		setHeader(r, "x-own", "kept")
		w.produce(r)
		w.until("it is delivered", func() bool { return len(w.delivered(webhooks[1])) == 1 })
		a.quiesce()
		b.quiesce()
		got := w.attempts(webhooks[1])
		if len(got) != 1 || got[0].SourcePartition != 1 || got[0].EventID != eventID(webhooks[1], 0) {
			t.Errorf("attempts %+v, want one of an event in partition 1", got)
		}
		if n := a.metric("misrouted_events_total") + b.metric("misrouted_events_total"); n != 1 {
			t.Errorf("%v are counted as misrouted, want 1", n)
		}

		// A second time it is a record that two views of the partitions play ball with.
		r = w.event(webhooks[1], 1)
		r.Partition = 0
		setHeader(r, "webhook-moved", w.topo.Events()+"/2/0")
		w.produce(r)
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		if d := w.dead()[0]; d.Reason != record.InvalidRecord || d.ID != eventID(webhooks[1], 1) {
			t.Errorf("%s died as %s", d.ID, d.Reason)
		}
		time.Sleep(time.Minute)
		if got := len(w.receiver.Requests()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
	})
}

// Headers of ours in a waiting record that are corrupt never hold it up for longer
// than its schedule could have: not even when it hops, each time with a fresh timestamp.
func TestCorruptDueTime(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.MaxAttempts = 8 })
		a := w.start("a")
		a.owns(0)
		d := record.Delivery{Event: record.Event{Webhook: "w", ID: "late"}, Key: []byte("w"), Attempts: 6, Source: record.Source{Topic: w.topo.Events()}}
		d.DueAt = record.At(time.Now().AddDate(100, 0, 0))
		r := d.RetryRecord(w.topo.Retry(16*time.Second), 0)
		began := time.Now()
		w.produce(r)
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		// 2^6 s, and at most a tenth of that as jitter.
		if took := time.Since(began); took > 75*time.Second {
			t.Errorf("it left after %s", took)
		}
	})
}

// The longest delay of the schedule, written at once: the due time is rounded up to
// a millisecond, the record's timestamp cut to one. It is no corrupt one.
func TestLongestDueTime(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond + 900*time.Microsecond)))
		d := record.Delivery{Event: record.Event{Webhook: "w", ID: "longest"}, Key: []byte("w"), Attempts: 1, Source: record.Source{Topic: w.topo.Events()}}
		d.DueAt = record.NotBefore(time.Now().Add(2200 * time.Millisecond)) // 2 s, and a tenth of it
		w.produce(d.RetryRecord(w.topo.Retry(2*time.Second), 0))
		w.until("it is sent", func() bool { return len(w.receiver.Of("w")) == 1 })
		if at := w.receiver.Of("w")[0].Start; at.Before(d.DueAt.Time) {
			t.Errorf("it was sent at %s, and was due at %s", at, d.DueAt)
		}
	})
}

// A due time that can't be read is at once, and attempts begin again: bounded, not lost.
func TestUnreadableWaitingRecord(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		r := w.event("w", 0)
		r.Topic = w.topo.Retry(2 * time.Second)
		setHeader(r, "webhook-due-at", "soon")
		setHeader(r, "webhook-attempt", "-1")
		bad := w.event("w", 1)
		bad.Topic, bad.Key = r.Topic, []byte("no id")
		w.produce(bad, r)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		a.quiesce()
		if d := w.dead(); len(d) != 1 || d[0].Reason != record.InvalidRecord || string(d[0].Key) != "no id" {
			t.Errorf("dead letters %+v", d)
		}
	})
}
