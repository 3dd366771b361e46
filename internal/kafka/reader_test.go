package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestNextPassesMarkersAndAbortedRecords(t *testing.T) {
	cluster := startCluster(t)
	plain, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	put(t, plain, "a", "b") // 0, 1
	w.commit("c", "d")      // 2, 3, marker 4
	w.abort("e")            // 5, marker 6
	put(t, plain, "f")      // 7
	w.abort("g", "h")       // 8, 9, marker 10

	r := NewReader(plain, topic, 0, Earliest)
	batch := next(t, r)
	if got := read(batch.Records); got != "0:a 1:b 2:c 3:d 7:f" {
		t.Errorf("read %q", got)
	}
	if batch.Next != 11 || batch.HighWatermark != 11 || batch.LastStable != 11 || batch.LogStart != 0 || batch.Reset {
		t.Errorf("after aborted records and a marker at the end: %+v", batch)
	}
	for _, from := range []int64{4, 5, 8, 10} { // from a marker, from the middle of a transaction
		want := ""
		if from < 7 {
			want = "7:f"
		}
		if batch := next(t, NewReader(plain, topic, 0, from)); read(batch.Records) != want || batch.Next != 11 {
			t.Errorf("from %d: read %q, next %d", from, read(batch.Records), batch.Next)
		}
	}
	if batch := next(t, r); read(batch.Records) != "" || batch.Next != 11 {
		t.Errorf("at the end: %+v", batch)
	}
	put(t, plain, "i")
	if batch := next(t, r); read(batch.Records) != "11:i" || batch.Next != 12 {
		t.Errorf("after more has come: %+v", batch)
	}
}

func TestNextReadsNothingBehindAnOpenTransaction(t *testing.T) {
	cluster := startCluster(t)
	plain, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	put(t, plain, "a")
	w.begin("b") // 1
	put(t, plain, "c")

	r := NewReader(plain, topic, 0, 0)
	if batch := next(t, r); read(batch.Records) != "0:a" || batch.Next != 1 {
		t.Errorf("before the transaction: %+v", batch)
	}
	for range 2 {
		if batch := next(t, r); len(batch.Records) != 0 || batch.Next != 1 || batch.LastStable != 1 || batch.HighWatermark != 3 {
			t.Errorf("at the open transaction: %+v", batch)
		}
	}
	w.end(kgo.TryCommit) // marker 3
	if batch := next(t, r); read(batch.Records) != "1:b 2:c" || batch.Next != 4 || batch.LastStable != 4 {
		t.Errorf("after its end: %+v", batch)
	}
}

func TestNextPassesWhatCompactionTook(t *testing.T) {
	cluster := startCluster(t)
	if err := cluster.CreateTopic("compacted", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	cl := newClient(t, cluster)
	write := func(keys ...string) {
		t.Helper()
		var records []*kgo.Record
		for _, key := range keys {
			records = append(records, &kgo.Record{Topic: "compacted", Key: []byte(key), Value: []byte(key)})
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write("e")      // 0: stays
	write("a", "b") // 1, 2: both superseded
	write("a", "c") // 3, 4: c superseded, at the batch's end
	write("c", "b") // 5, 6
	write("d")      // 7, in the active segment, which is never compacted
	cluster.Compact()

	for from, want := range map[int64]string{0: "0:e 3:a 5:c 6:b 7:d", 1: "3:a 5:c 6:b 7:d", 2: "3:a 5:c 6:b 7:d", 4: "5:c 6:b 7:d"} {
		batch := next(t, NewReader(cl, "compacted", 0, from))
		if read(batch.Records) != want || batch.Next != 8 || batch.HighWatermark != 8 || batch.Reset {
			t.Errorf("from %d: read %q, %+v", from, read(batch.Records), batch)
		}
	}
}

func TestNextInSmallPortions(t *testing.T) {
	cluster := startCluster(t)
	plain, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	put(t, plain, strings.Repeat("a", 2000))
	w.abort("b")
	w.commit(strings.Repeat("c", 2000))
	end, err := HighWatermark(t.Context(), plain, topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, fetches, records := NewReader(plain, topic, 0, 0), 0, 0
	for pos := int64(0); pos < end; fetches++ {
		batch, err := r.Next(t.Context(), 0, 1) // one batch of records at least
		if err != nil || batch.Next <= pos {
			t.Fatalf("at %d: %+v, %v", pos, batch, err)
		}
		pos, records = batch.Next, records+len(batch.Records)
	}
	if fetches != 5 || records != 2 { // each record and each marker is a batch
		t.Errorf("%d records in %d fetches", records, fetches)
	}
}

func TestNextOutOfRangeStartsAtTheLogsStartAndSaysSo(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	for _, v := range []string{"a", "b", "c", "d"} {
		put(t, cl, v)
	}
	if err := cluster.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 1, 9} { // taken by retention; beyond the end
		r := NewReader(cl, topic, 0, from)
		if batch := next(t, r); read(batch.Records) != "2:c 3:d" || !batch.Reset || batch.LogStart != 2 || batch.Next != 4 {
			t.Errorf("from %d: %+v", from, batch)
		}
		if batch := next(t, r); batch.Reset {
			t.Errorf("from %d: the reset is told twice", from)
		}
	}
	for _, from := range []int64{Earliest, 2, 4} {
		if batch := next(t, NewReader(cl, topic, 0, from)); batch.Reset {
			t.Errorf("from %d: a reset", from)
		}
	}
	if err := cluster.DeleteRecords(topic, 0, 4); err != nil { // nothing is left
		t.Fatal(err)
	}
	if batch := next(t, NewReader(cl, topic, 0, 2)); len(batch.Records) != 0 || !batch.Reset || batch.Next != 4 {
		t.Errorf("of an emptied partition: %+v", batch)
	}
}

// A reset is told even when the call that met it failed.
func TestResetOutlivesAnError(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	put(t, cl, "a")
	r := NewReader(cl, topic, 0, 7)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed})
	if _, err := r.Next(t.Context(), 0, 1<<20); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatal(err)
	}
	if batch := next(t, r); read(batch.Records) != "0:a" || !batch.Reset {
		t.Errorf("got %+v", batch)
	}
}

func TestNextWaitsAtTheEnd(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	waiting := countFetches(cluster)
	go func() {
		if waiting.Wait(t.Context(), 1) == nil {
			cl.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte("a")}, nil)
		}
	}()
	batch, err := NewReader(cl, topic, 0, 0).Next(t.Context(), time.Minute, 1<<20)
	if err != nil || read(batch.Records) != "0:a" || waiting.Hits() != 1 {
		t.Errorf("%+v, %v, after %d fetches", batch, err, waiting.Hits())
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	r := NewReader(cl, topic, 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := countFetches(cluster)
	go func() {
		if waiting.Wait(t.Context(), 1) == nil {
			cancel()
		}
	}()
	if _, err := r.Next(ctx, time.Minute, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("while waiting for records: %v", err)
	}

	// One try fails, the next waits when the context ends.
	ctx, cancel = context.WithCancel(t.Context())
	waiting = countFetches(cluster) // before the fault, which would hide its request
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.KafkaStorageError})
	go func() {
		if waiting.Wait(t.Context(), 2) == nil {
			cancel()
		}
	}()
	_, err := r.Next(ctx, time.Minute, 1<<20)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, kerr.KafkaStorageError) || !strings.Contains(err.Error(), "reading t/0 from offset 0") {
		t.Errorf("after a failed try: %v", err)
	}
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.KafkaStorageError, Count: -1})
	ctx, cancel = context.WithTimeout(t.Context(), minBackoff)
	defer cancel()
	if _, err = r.Next(ctx, 0, 1<<20); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("between two tries: %v", err)
	}
}
