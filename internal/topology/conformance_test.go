package topology_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/topology"
)

// What is promised of a set of topics, on the cluster that REENVIO_TEST_KAFKA names: Apache Kafka also checks the settings' names and values.

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestTheSetIsMadeKeptAndMended(t *testing.T) {
	cluster := kafkatest.Start(t)
	cl := cluster.Client(t)
	adm := kadm.NewClient(cl)
	topo := cluster.Topology(t, 4, 2*time.Second, time.Minute)
	cluster.CreateTopics(t, topo) // plans and applies

	// planned asks until the plan is as wanted: the controller tells the brokers of a new setting after it has confirmed it.
	planned := func(when, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for {
			changes, err := topology.Plan(ctx, adm, topo)
			var got []string
			for _, c := range changes {
				got = append(got, c.String())
			}
			if strings.Join(got, "\n") == want {
				return
			}
			if err != nil || ctx.Err() != nil || !cluster.OnApache() {
				t.Fatalf("the plan %s:\n%s\nwant:\n%s\n%v", when, strings.Join(got, "\n"), want, err)
			}
		}
	}
	planned("after apply", "")
	if err := topology.Verify(t.Context(), adm, topo); err != nil {
		t.Errorf("Verify after apply: %v", err)
	}

	set := func(topic, key, value string) {
		t.Helper()
		alter := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}
		if resps, err := adm.AlterTopicConfigs(t.Context(), alter, topic); err != nil || resps[0].Err != nil {
			t.Fatal(err, resps)
		}
	}
	set(topo.State(), "min.cleanable.dirty.ratio", "0.5")
	set(topo.Retry(time.Minute), "retention.ms", "60000")
	planned("after two changes", topo.Retry(time.Minute)+": config retention.ms=60000 -> retention.ms=604800000\n"+
		topo.State()+": config min.cleanable.dirty.ratio=0.5 -> min.cleanable.dirty.ratio=0.1")
	if err := topology.Verify(t.Context(), adm, topo); err == nil || !strings.Contains(err.Error(), "retention.ms=60000") || strings.Contains(err.Error(), "dirty") {
		t.Errorf("Verify after two changes: %v", err)
	}
	cluster.CreateTopics(t, topo)
	planned("after mending", "")
}

// A producer that knows nothing of Reenvio, with the client's defaults, hits the number.
func TestKeysGoToTheirNumber(t *testing.T) {
	cluster := kafkatest.Start(t)
	topo := cluster.Topology(t, 7)
	cluster.CreateTopics(t, topo)
	cl := cluster.Client(t)
	for _, webhook := range []string{"a", "wh_42", "crm:eu-1.orders", strings.Repeat("x", 256)} {
		record := &kgo.Record{Topic: topo.Events(), Key: []byte(webhook)}
		if err := cl.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if want := topo.PartitionFor(webhook); record.Partition != want {
			t.Errorf("%s went to %d, its number is %d", webhook, record.Partition, want)
		}
	}
}
