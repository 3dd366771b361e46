package kafka

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const topic = "t"

var discard = slog.New(slog.DiscardHandler)

// startCluster has one topic of one partition.
func startCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(1, topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// startVirtual is for synctest: no packet leaves the bubble.
func startVirtual(t *testing.T) (*kfake.Cluster, dialFunc) {
	t.Helper()
	network := new(kfake.VirtualNetwork)
	return startCluster(t, kfake.ListenFn(network.Listen), kfake.Ports(9001, 9002, 9003)), network.DialContext
}

// newClient is one as the stages make it.
func newClient(t *testing.T, cluster *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return clientOf(t, Config{Brokers: cluster.ListenAddrs(), InstanceID: "test"}, opts...)
}

func clientOf(t *testing.T, c Config, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	base, err := Options(c, discard)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// put produces records with the given values in one batch, and returns the offset of the last.
func put(t *testing.T, cl *kgo.Client, values ...string) int64 {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(v[:1]), Value: []byte(v)})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return records[len(records)-1].Offset
}

// writer is a transactional client. Each of its transactions takes one offset more than its records, for the marker.
type writer struct {
	t  *testing.T
	cl *kgo.Client
}

func newWriter(t *testing.T, cluster *kfake.Cluster, id string) writer {
	t.Helper()
	return writer{t, newClient(t, cluster, kgo.TransactionalID(id))}
}

func (w writer) begin(values ...string) {
	w.t.Helper()
	if err := w.cl.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	put(w.t, w.cl, values...)
}

func (w writer) end(how kgo.TransactionEndTry) {
	w.t.Helper()
	if err := w.cl.EndTransaction(w.t.Context(), how); err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) commit(values ...string) { w.t.Helper(); w.begin(values...); w.end(kgo.TryCommit) }
func (w writer) abort(values ...string)  { w.t.Helper(); w.begin(values...); w.end(kgo.TryAbort) }

func next(t *testing.T, r *Reader) Batch {
	t.Helper()
	batch, err := r.Next(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// read is what a batch holds: "offset:value ...".
func read(records []*kgo.Record) string {
	s := ""
	for _, r := range records {
		s += fmt.Sprintf(" %d:%s", r.Offset, r.Value)
	}
	if s == "" {
		return s
	}
	return s[1:]
}

// countFetches observes; it changes nothing.
func countFetches(cluster *kfake.Cluster) *kfake.FaultHandle {
	return cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
}
