package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

// Whatever lies in the events topic has a defined end, and what comes behind it in its partition goes on.
func TestBadRecordsHaveADefinedEnd(t *testing.T) {
	s := newShell(t)
	d := startDev(t, s)
	d.await(t, d.ended, demoOK, "delivered")
	file, err := findDev(".reenvio/dev.json")
	if err != nil || file == nil {
		t.Fatalf("dev.json: %v, %v", file, err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(file.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const partitions = 3 // as in freePorts
	topo, err := topology.New(topology.Config{Prefix: "webhooks.", Partitions: partitions, Replication: 1}, []time.Duration{2 * time.Second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	right := topo.PartitionFor(demoOK)
	wrong := (right + 1) % partitions

	type death struct {
		reason  record.DeathReason
		because string
	}
	deaths := map[string]death{} // by source
	for _, tt := range []struct {
		name      string
		key       string // "-" is none
		partition int32
		value     []byte
		headers   string
		want      string             // the event is delivered, and its line has this; or
		dies      record.DeathReason // it dies of this, and
		because   string             // this is said
	}{
		{name: "no key", key: "-", partition: right, dies: record.InvalidRecord, because: "has no key"},
		{name: "bad key", key: "bad/key", partition: topo.PartitionFor("bad/key"), headers: "ce_id=a", dies: record.InvalidRecord, because: "webhook id has a byte 0x2f"},
		{name: "long key", key: strings.Repeat("k", 300), partition: right, headers: "ce_id=b", dies: record.InvalidRecord, because: "webhook id has 300 bytes"},
		{name: "long id", key: demoOK, partition: right, headers: "ce_id=" + strings.Repeat("i", 300), dies: record.InvalidRecord, because: "event id has 300 bytes"},
		{name: "id with a blank", key: demoOK, partition: right, headers: "ce_id=a b", dies: record.InvalidRecord, because: "event id has a byte 0x20"},
		{name: "unknown webhook", key: "nobody", partition: topo.PartitionFor("nobody"), headers: "ce_id=c", dies: record.WebhookUnknown, because: "no webhook of this id"},
		{name: "moved, and wrong again", key: demoOK, partition: wrong, headers: "ce_id=d,webhook-moved=webhooks.events/0/1", dies: record.InvalidRecord, because: "again after a move"},
		{name: "wrong partition", key: demoOK, partition: wrong, headers: "ce_id=is-moved", want: "is-moved"},
		{name: "no id", key: demoOK, partition: right, value: []byte("x"), want: " evt_"},
		{name: "null value", key: demoOK, partition: right, headers: "ce_id=is-null", want: "is-null"},
		{name: "headers of ours", key: demoOK, partition: right, headers: "ce_id=has-ours,webhook-attempt=4,webhook-due-at=2099-01-01T00:00:00.000Z", want: "has-ours"},
		{name: "line break in a type", key: demoOK, partition: right, headers: "ce_id=has-crlf,ce_type=a\r\nX-Evil: 1", want: "has-crlf"},
		{name: "no JSON in structured mode", key: demoOK, partition: right, value: []byte(`{"id":`), headers: "content-type=application/cloudevents+json", want: " evt_"},
	} {
		r := &kgo.Record{Topic: "webhooks.events", Partition: tt.partition, Key: []byte(tt.key), Value: tt.value}
		if tt.key == "-" {
			r.Key = nil
		}
		for header := range strings.SplitSeq(tt.headers, ",") {
			if name, value, ok := strings.Cut(header, "="); ok {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
			}
		}
		written, err := client.ProduceSync(t.Context(), r).First()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if tt.dies == "" {
			d.await(t, d.ended, demoOK, "delivered", "attempt 1", tt.want)
			continue
		}
		deaths[record.SourceOf(written).String()] = death{tt.dies, tt.because}
	}
	last := s.run(t, "send", "--webhook", demoOK, "--id", "comes-behind", "--data", "{}", "-o", "json").wantCode(t, exitOK).object(t)
	if int32(last["partition"].(float64)) != right {
		t.Fatalf("sent to partition %v, want %d", last["partition"], right)
	}
	d.await(t, d.ended, demoOK, "delivered", "comes-behind")
	d.await(t, d.ended, "nobody", "dead", "webhook_unknown")
	d.await(t, d.ended, "bad/key", "dead", "invalid_record: a")

	for _, letter := range s.run(t, "dlq", "list", "-o", "json").wantCode(t, exitOK).array(t) {
		l := letter.(map[string]any)
		source := l["webhook_source"].(string)
		want, there := deaths[source]
		if reason, message := l["webhook_dlq_reason"], l["dlq_errors_message"].(string); !there || reason != string(want.reason) || !strings.Contains(message, want.because) {
			t.Errorf("%s: %s, %s; want %+v", source, reason, message, want)
		}
		delete(deaths, source)
	}
	if len(deaths) > 0 {
		t.Errorf("no dead letter of %+v", deaths)
	}
	d.wantMetrics(t, []string{"reenvio_events_without_id_total 5\n", "reenvio_misrouted_events_total 1\n", fmt.Sprintf("reenvio_dlq_records_total{reason=%q} 6\n", record.InvalidRecord)})
	d.end(t)
}
