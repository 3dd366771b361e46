package kafka_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

// What is promised of the reader, on the cluster that REENVIO_TEST_KAFKA names.

func TestMain(m *testing.M) { kafkatest.Main(m) }

type log struct {
	t       *testing.T
	cluster *kafkatest.Cluster
	topic   string
	plain   *kgo.Client
	tx      *kgo.Client
}

func newLog(t *testing.T) log {
	t.Helper()
	l := log{t: t, cluster: kafkatest.Start(t), topic: kafkatest.Prefix(t) + "log"}
	l.plain = l.client()
	l.tx = l.client(kgo.TransactionalID(l.topic))
	adm := kadm.NewClient(l.plain)
	if _, err := adm.CreateTopic(t.Context(), 1, 3, nil, l.topic); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = adm.DeleteTopics(t.Context(), l.topic) })
	return l
}

func (l log) client(opts ...kgo.Opt) *kgo.Client {
	l.t.Helper()
	base, err := kafka.Options(l.cluster.Kafka(), testLogger(l.t))
	if err != nil {
		l.t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(cl.Close)
	return cl
}

func (l log) put(cl *kgo.Client, values ...string) {
	l.t.Helper()
	for _, v := range values {
		if err := cl.ProduceSync(l.t.Context(), &kgo.Record{Topic: l.topic, Value: []byte(v)}).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l log) begin() {
	l.t.Helper()
	if err := l.tx.BeginTransaction(); err != nil {
		l.t.Fatal(err)
	}
}

func (l log) end(how kgo.TransactionEndTry) {
	l.t.Helper()
	if err := l.tx.EndTransaction(l.t.Context(), how); err != nil {
		l.t.Fatal(err)
	}
}

func (l log) all() (values string, next int64) {
	l.t.Helper()
	next, err := kafka.ReadAll(l.t.Context(), l.plain, l.topic, 0, func(r *kgo.Record) error {
		values += fmt.Sprintf("%d:%s ", r.Offset, r.Value)
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return values, next
}

func TestReadsWhatIsCommittedToTheExactEnd(t *testing.T) {
	l := newLog(t)
	if got, next := l.all(); got != "" || next != 0 {
		t.Errorf("an empty partition: %q, %d", got, next)
	}
	l.put(l.plain, "a")
	l.begin()
	l.put(l.tx, "b", "c")
	l.end(kgo.TryCommit) // marker 3
	l.begin()
	l.put(l.tx, "d")
	l.end(kgo.TryAbort) // marker 5
	if got, next := l.all(); got != "0:a 1:b 2:c " || next != 6 {
		t.Errorf("%q, %d", got, next)
	}

	l.begin()
	l.put(l.tx, "e") // 6
	l.put(l.plain, "f")
	r := kafka.NewReader(l.plain, l.topic, 0, 6)
	batch, err := r.Next(t.Context(), 0, 1<<20)
	if err != nil || len(batch.Records) != 0 || batch.Next != 6 || batch.LastStable != 6 || batch.HighWatermark != 8 || batch.LogStart != 0 {
		t.Errorf("behind an open transaction: %+v, %v", batch, err)
	}
	high, err := kafka.HighWatermark(t.Context(), l.plain, l.topic, 0)
	if err != nil || high != 8 {
		t.Errorf("HighWatermark with an open transaction: %d, %v", high, err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); l.end(kgo.TryAbort) }()
	got, next := l.all() // begins before the end of the transaction, or after
	<-ended
	if got != "0:a 1:b 2:c 7:f " || next < 8 || next > 9 {
		t.Errorf("%q, %d", got, next)
	}
}

func TestOutOfRangeIsTold(t *testing.T) {
	l := newLog(t)
	l.put(l.plain, "a", "b", "c")
	var offsets kadm.Offsets
	offsets.AddOffset(l.topic, 0, 2, -1)
	if _, err := kadm.NewClient(l.plain).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{1, 9} {
		batch, err := kafka.NewReader(l.plain, l.topic, 0, from).Next(t.Context(), 0, 1<<20)
		if err != nil || !batch.Reset || len(batch.Records) != 1 || batch.Next != 3 || batch.LogStart != 2 {
			t.Errorf("from %d: %+v, %v", from, batch, err)
		}
	}
}

func TestReadsOnThroughTheLossOfABroker(t *testing.T) {
	l := newLog(t)
	l.put(l.plain, "a")
	r := kafka.NewReader(l.plain, l.topic, 0, kafka.Earliest)
	if _, err := r.Next(t.Context(), 0, 1<<20); err != nil {
		t.Fatal(err)
	}
	for i := range l.cluster.Brokers { // one of them is the leader
		l.cluster.KillBroker(t, i)
		l.put(l.plain, "b")
		batch, err := r.Next(t.Context(), 0, 1<<20)
		if err != nil || len(batch.Records) != 1 {
			t.Errorf("without broker %d: %+v, %v", i, batch, err)
		}
		l.cluster.StartBroker(t, i)
	}
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
