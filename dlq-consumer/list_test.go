package dlqconsumer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

type letters struct {
	*Reader
	topo    *topology.Topology
	cluster *kafkatest.Cluster
	client  *kgo.Client
}

func start(t *testing.T) *letters {
	t.Helper()
	cluster := kafkatest.Fake(t)
	client := cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	topo, err := topology.New(topology.Config{Prefix: "t.", Partitions: 3, Replication: 1}, []time.Duration{2 * time.Second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 3, 1, nil, topo.DLQ()); err != nil {
		t.Fatal(err)
	}
	return &letters{Reader: New(client, topo), topo: topo, cluster: cluster, client: client}
}

// letter is a dead letter of webhook, written minute minutes after noon.
func (l *letters) letter(t *testing.T, webhook, id string, reason record.DeathReason, minute int) *kgo.Record {
	t.Helper()
	number := l.topo.PartitionFor(webhook)
	event := &kgo.Record{
		Topic: l.topo.Events(), Partition: number, Key: []byte(webhook), Value: []byte(`{"n":1}`),
		Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(id)}, {Key: "content-type", Value: []byte("application/json")}},
	}
	d, err := record.FromEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	r := d.DeadLetter(l.topo.DLQ(), number, record.Death{Reason: reason, At: record.At(noon)})
	r.Timestamp = noon.Add(time.Duration(minute) * time.Minute)
	return r
}

func (l *letters) write(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := l.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (l *letters) list(t *testing.T, f Filter, limit int) []string {
	t.Helper()
	var ids []string
	if err := l.List(t.Context(), f, limit, func(d record.DeadLetter) error { ids = append(ids, d.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return ids
}

// webhookIn returns an id whose number is the given one.
func (l *letters) webhookIn(number int32) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("wh-%d", i); l.topo.PartitionFor(id) == number {
			return id
		}
	}
}

func TestNewestFirstOverAllPartitions(t *testing.T) {
	l := start(t)
	var all []*kgo.Record
	for minute := range 30 {
		all = append(all, l.letter(t, l.webhookIn(int32(minute%2)), fmt.Sprintf("e%02d", minute), record.AttemptsExhausted, minute))
	}
	// A partition that is read last and has only old ones, which must not push out newer ones of others.
	all = append(all, l.letter(t, l.webhookIn(2), "old1", record.Discarded, -2), l.letter(t, l.webhookIn(2), "old2", record.Discarded, -1))
	l.write(t, all...)
	if got := l.list(t, Filter{}, 5); !slices.Equal(got, []string{"e29", "e28", "e27", "e26", "e25"}) {
		t.Errorf("got %v", got)
	}
	if got := l.list(t, Filter{}, 100); len(got) != 32 || got[29] != "e00" || got[31] != "old1" {
		t.Errorf("got %d, last %v", len(got), got)
	}
	if got := l.list(t, Filter{}, 0); len(got) != 0 {
		t.Errorf("got %v for a limit of 0", got)
	}
}

func TestOldMatchesAreFoundBehindManyOthers(t *testing.T) {
	l := start(t)
	webhook := l.webhookIn(1)
	records := []*kgo.Record{l.letter(t, webhook, "needle", record.Discarded, 0)}
	for i := range firstStep*2 + 7 { // further back than the first step, and than the second one's edge
		reason := record.TooLarge
		if i%100 == 0 {
			reason = record.Expired
		}
		records = append(records, l.letter(t, webhook, fmt.Sprintf("hay%d", i), reason, 1))
	}
	l.write(t, records...)
	if got := l.list(t, Filter{Reasons: []record.DeathReason{record.Expired}}, 100); len(got) != 21 || got[20] != "hay0" {
		t.Errorf("each once, over all steps: got %d, %v", len(got), got)
	}
	for name, f := range map[string]Filter{
		"id":        {IDs: []string{"needle"}},
		"reason":    {Reasons: []record.DeathReason{record.Discarded}},
		"time":      {Since: noon.Add(-time.Hour), Until: noon, Reasons: []record.DeathReason{record.Discarded, record.URLBlocked}},
		"all three": {Webhooks: []string{webhook, "other"}, IDs: []string{"needle", "other"}, Reasons: []record.DeathReason{record.Discarded}},
	} {
		if got := l.list(t, f, 10); !slices.Equal(got, []string{"needle"}) {
			t.Errorf("by %s: got %v", name, got)
		}
	}
	for name, f := range map[string]Filter{
		"other webhook": {Webhooks: []string{"other"}, IDs: []string{"needle"}},
		"other reason":  {Reasons: []record.DeathReason{record.URLBlocked}},
		"later":         {Since: noon.Add(time.Minute), IDs: []string{"needle"}},
		"earlier":       {Until: noon.Add(-time.Minute), IDs: []string{"needle"}},
	} {
		if got := l.list(t, f, 10); len(got) != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestOnlyCommittedLettersCount(t *testing.T) {
	l := start(t)
	webhook := l.webhookIn(2)
	writer := l.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("test"))
	for _, end := range []struct {
		id     string
		commit kgo.TransactionEndTry
	}{{"aborted", kgo.TryAbort}, {"committed", kgo.TryCommit}} {
		if err := writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := writer.ProduceSync(t.Context(), l.letter(t, webhook, end.id, record.Discarded, 1)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := writer.EndTransaction(t.Context(), end.commit); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := writer.ProduceSync(t.Context(), l.letter(t, webhook, "open", record.Discarded, 1)).FirstErr(); err != nil {
		t.Fatal(err)
	}
	// An open transaction must not make the list wait for its end.
	if got := l.list(t, Filter{}, 10); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("got %v", got)
	}
	for _, offset := range []int64{0, 1, 3, 4, 5, 99, -1} { // aborted, marker, marker, open, end, beyond, before
		if _, err := l.At(t.Context(), 2, offset); !errors.Is(err, ErrNotFound) {
			t.Errorf("at offset %d: %v", offset, err)
		}
	}
	if got, err := l.At(t.Context(), 2, 2); err != nil || got.ID != "committed" {
		t.Errorf("got %v, %v", got.ID, err)
	}
	if _, err := l.At(t.Context(), 3, 0); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "0 to 2") {
		t.Errorf("a partition that does not exist: %v", err)
	}
}

func TestAtFindsOneInTheMiddleOfABatch(t *testing.T) {
	l := start(t)
	webhook := l.webhookIn(0)
	l.write(t, l.letter(t, webhook, "a", record.Discarded, 1), l.letter(t, webhook, "b", record.Expired, 2), l.letter(t, webhook, "c", record.Discarded, 3))
	got, err := l.At(t.Context(), 0, 1)
	if err != nil || got.ID != "b" || got.Reason != record.Expired || got.Position != (record.Source{Topic: "t.dlq", Partition: 0, Offset: 1}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	data, err := json.Marshal(got)
	if err != nil || !strings.Contains(string(data), `"value":"{\"n\":1}"`) || !strings.Contains(string(data), `"partition":0,"offset":1`) {
		t.Errorf("as JSON: %s, %v", data, err)
	}
}

func TestAtDoesNotTakeTheNextForOneThatIsGone(t *testing.T) {
	l := start(t)
	webhook := l.webhookIn(0)
	l.write(t, l.letter(t, webhook, "a", record.Discarded, 1))
	l.write(t, l.letter(t, webhook, "b", record.Discarded, 2))
	gone := kadm.Offsets{}
	gone.Add(kadm.Offset{Topic: l.topo.DLQ(), Partition: 0, At: 1})
	if _, err := kadm.NewClient(l.client).DeleteRecords(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if got, err := l.At(t.Context(), 0, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, %v", got.ID, err)
	}
	if got := l.list(t, Filter{}, 10); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v", got)
	}
}

func TestAForeignRecordIsListedToo(t *testing.T) {
	l := start(t)
	l.write(t, &kgo.Record{Topic: l.topo.DLQ(), Partition: 0, Value: []byte("?")})
	if got := l.list(t, Filter{}, 10); len(got) != 1 {
		t.Errorf("got %v: what lies in the DLQ must not go unseen", got)
	}
}

func TestListStopsAtTheFirstError(t *testing.T) {
	l := start(t)
	webhook := l.webhookIn(0)
	l.write(t, l.letter(t, webhook, "a", record.Discarded, 1), l.letter(t, webhook, "b", record.Discarded, 2))
	full, calls := errors.New("disk full"), 0
	err := l.List(t.Context(), Filter{}, 10, func(record.DeadLetter) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestFiltersThatFindNothingAreRefused(t *testing.T) {
	for _, f := range []Filter{
		{Reasons: []record.DeathReason{record.Expired, "exhausted"}}, {Webhooks: []string{"no/id"}}, {Since: noon, Until: noon.Add(-time.Second)},
	} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v was accepted", f)
		}
		l := &Reader{}
		if err := l.List(t.Context(), f, 1, nil); err == nil {
			t.Errorf("List accepted %+v", f)
		}
	}
	if err := (Filter{Reasons: []record.DeathReason{"exhausted"}}).Validate(); !strings.Contains(err.Error(), "attempts_exhausted, permanent_status, ") {
		t.Error(err)
	}
	if err := (Filter{Reasons: []record.DeathReason{record.Expired}, Webhooks: []string{"a"}, IDs: []string{"x/y"}, Since: noon, Until: noon}).Validate(); err != nil {
		t.Error(err)
	}
}
