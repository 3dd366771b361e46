package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func all(ctx context.Context, cl *kgo.Client) (string, int64, error) {
	var records []*kgo.Record
	end, err := ReadAll(ctx, cl, topic, 0, func(r *kgo.Record) error { records = append(records, r); return nil })
	return read(records), end, err
}

func TestReadAllOfNothing(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	fetches := countFetches(cluster)
	if got, end, err := all(t.Context(), cl); got != "" || end != 0 || err != nil {
		t.Errorf("an empty partition: %q, %d, %v", got, end, err)
	}
	put(t, cl, "a", "b")
	if err := cluster.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	if got, end, err := all(t.Context(), cl); got != "" || end != 2 || err != nil || fetches.Hits() != 0 {
		t.Errorf("an emptied partition: %q, %d, %v, after %d fetches", got, end, err, fetches.Hits())
	}
	newWriter(t, cluster, "tx").abort("c")
	if got, end, err := all(t.Context(), cl); got != "" || end != 4 || err != nil {
		t.Errorf("aborted records only: %q, %d, %v", got, end, err)
	}
}

// The old owner's marker lands after the new owner has begun to read.
func TestReadAllWaitsForAnOpenTransaction(t *testing.T) {
	cluster := startCluster(t)
	cl, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	put(t, cl, "a")
	w.begin("b")
	fetches := countFetches(cluster)
	go func() {
		if fetches.Wait(t.Context(), 3) == nil {
			w.end(kgo.TryCommit)
		}
	}()
	if got, end, err := all(t.Context(), cl); got != "0:a 1:b" || end != 3 || err != nil {
		t.Errorf("%q, %d, %v", got, end, err)
	}
}

// Waiting costs the broker little: an owner may have to wait for the transaction timeout of a dead one.
func TestReadAllWaitsWithoutHaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, dial := startVirtual(t)
		c := Config{Brokers: cluster.ListenAddrs(), InstanceID: "test", Dial: dial}
		w := writer{t, clientOf(t, c, kgo.TransactionalID("tx"))}
		w.begin("a")
		fetches := countFetches(cluster)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+readAllPause/2) // in a pause
		defer cancel()
		_, end, err := all(ctx, clientOf(t, c))
		if end != 0 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a transaction is open from 0 on") {
			t.Errorf("ended at %d: %v", end, err)
		}
		if hits := fetches.Hits(); hits < 190 || hits > 201 {
			t.Errorf("%d fetches in 10 s", hits)
		}
		w.end(kgo.TryAbort)
	})
}

func TestReadAllEndsWithItsContextAndWithFn(t *testing.T) {
	cluster := startCluster(t)
	cl, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	put(t, cl, "a", "b")
	w.begin("c")
	ctx, cancel := context.WithCancel(t.Context())
	fetches := countFetches(cluster)
	go func() {
		if fetches.Wait(t.Context(), 2) == nil {
			cancel()
		}
	}()
	got, end, err := all(ctx, cl)
	if got != "0:a 1:b" || end != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %d, %v", got, end, err)
	}
	bad := errors.New("bad record")
	end, err = ReadAll(t.Context(), cl, topic, 0, func(r *kgo.Record) error {
		if r.Offset == 1 {
			return bad
		}
		return nil
	})
	if end != 1 || !errors.Is(err, bad) || !strings.Contains(err.Error(), "record t/0/1") {
		t.Errorf("%d, %v", end, err)
	}
}

// Whatever was written, in whatever transactions: ReadAll gives the committed records, in order, and ends at the high watermark.
func TestReadAllIsWhatWasCommitted(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	writers := []writer{newWriter(t, cluster, "tx-0"), newWriter(t, cluster, "tx-1")}
	var committed []*kgo.Record // over all rounds: they add up in one log
	rapid.Check(t, func(rt *rapid.T) {
		open := map[int][]*kgo.Record{}
		for i := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			who := rapid.IntRange(0, 2).Draw(rt, "writer") // 2 writes without transactions
			records := make([]*kgo.Record, rapid.IntRange(1, 3).Draw(rt, "records"))
			for j := range records {
				records[j] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%d-%d-%d", who, i, j)}
			}
			if who == 2 {
				produce(rt, cl, records)
				committed = append(committed, records...)
				continue
			}
			w := writers[who]
			if _, ok := open[who]; !ok {
				if err := w.cl.BeginTransaction(); err != nil {
					rt.Fatal(err)
				}
			}
			produce(rt, w.cl, records)
			open[who] = append(open[who], records...)
			if rapid.Bool().Draw(rt, "ends") {
				committed = append(committed, end(rt, w, open, who)...)
			}
		}
		for who := range writers {
			committed = append(committed, end(rt, writers[who], open, who)...)
		}
		slices.SortFunc(committed, func(a, b *kgo.Record) int { return int(a.Offset - b.Offset) })

		got, next, err := all(rt.Context(), cl)
		if err != nil || got != read(committed) {
			rt.Fatalf("read %q, want %q, %v", got, read(committed), err)
		}
		if hw, err := HighWatermark(rt.Context(), cl, topic, 0); err != nil || next != hw {
			rt.Fatalf("ended at %d of %d, %v", next, hw, err)
		}
	})
}

func produce(t *rapid.T, cl *kgo.Client, records []*kgo.Record) {
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// end commits or aborts what is open and returns what is committed.
func end(t *rapid.T, w writer, open map[int][]*kgo.Record, who int) []*kgo.Record {
	records, ok := open[who]
	if !ok {
		return nil
	}
	delete(open, who)
	commit := rapid.Bool().Draw(t, "commit")
	if err := w.cl.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
	if !commit {
		return nil
	}
	return records
}

func TestOffsets(t *testing.T) {
	cluster := startCluster(t)
	cl, w := newClient(t, cluster), newWriter(t, cluster, "tx")
	offset := func(ms int64) int64 {
		t.Helper()
		o, err := OffsetAt(t.Context(), cl, topic, 0, time.UnixMilli(ms))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if offset(1000) != 0 {
		t.Error("of an empty partition")
	}
	for _, ms := range []int64{1000, 2000, 3000, 4000} {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(ms)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for ms, want := range map[int64]int64{-62135596800000: 0, -1: 0, 999: 0, 1000: 0, 1001: 1, 4000: 3, 4001: 4} {
		if got := offset(ms); got != want {
			t.Errorf("OffsetAt(%d ms) = %d, want %d", ms, got, want)
		}
	}
	w.begin("a") // 4
	if err := cluster.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	high, err := HighWatermark(t.Context(), cl, topic, 0)
	if err != nil || high != 5 {
		t.Errorf("with an open transaction, HighWatermark = %d, %v", high, err)
	}
	start, err := StartOffset(t.Context(), cl, topic, 0)
	if err != nil || start != 2 {
		t.Errorf("StartOffset = %d, %v", start, err)
	}
	if _, err := HighWatermark(t.Context(), cl, "nowhere", 0); err == nil || !strings.Contains(err.Error(), "nowhere/0") {
		t.Errorf("of a topic that isn't there: %v", err)
	}
}
