package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// parked writes a parked event and returns its offset.
func (w *world) parked(t *testing.T, webhook, id string, producedAt time.Time) int64 {
	t.Helper()
	r, err := record.NewEventRecord(w.topo.Events(), w.topo.PartitionFor(webhook), record.Event{Webhook: webhook, ID: id, Type: "test", CESource: "/test"})
	if err != nil {
		t.Fatal(err)
	}
	r.Timestamp = producedAt
	d, err := record.FromEvent(r)
	if err != nil {
		t.Fatal(err)
	}
	r = d.ParkedRecord(w.topo.Parked(), w.topo.PartitionFor(webhook), record.ParkPaused)
	if err := w.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner())).ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return r.Offset
}

func TestEachParked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		neighbour := "n"
		for i := 0; w.topo.PartitionFor(neighbour) != w.topo.PartitionFor("crm"); i++ {
			neighbour = fmt.Sprint("n", i)
		}
		at := time.Now()
		var offsets []int64
		for i := range 6 {
			offsets = append(offsets, w.parked(t, "crm", fmt.Sprint(i), at.Add(time.Duration(i)*time.Minute)))
			w.parked(t, neighbour, fmt.Sprint("other-", i), at)
		}
		// 0 is before the webhook's part, 3 is done, 5 behind it.
		p := record.Parked{From: offsets[1], Done: []int64{offsets[3]}, Last: offsets[4], Count: 3}
		var got []string
		var done, all int64
		err := w.process(t).EachParked(t.Context(), "crm", p, func(d *record.Delivery) {
			got = append(got, d.ID+d.ProducedAt.Sub(record.At(at).Time).String())
		}, func(d, a int64) { done, all = d, a })
		if err != nil || fmt.Sprint(got) != "[11m0s 22m0s 44m0s]" {
			t.Errorf("got %v, %v", got, err)
		}
		if done != all || all != offsets[4]-offsets[1]+1 {
			t.Errorf("progress ended at %d of %d", done, all)
		}
		// A state that tells of more than there is does not wait for it.
		p.Last = 1000
		if err := w.process(t).EachParked(t.Context(), "crm", p, func(*record.Delivery) {}, func(int64, int64) {}); err != nil {
			t.Error(err)
		}
	})
}
