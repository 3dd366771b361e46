package kafkatest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// roundTrip writes a transaction through a cluster and reads it back in a group.
func roundTrip(t *testing.T, c *kafkatest.Cluster) {
	t.Helper()
	topo := c.Topology(t, 3)
	c.CreateTopics(t, topo)
	produce(t, c, topo.Events(), "a")
	read(t, c, topo.Events(), topo.Prefix()+"group", "a")
}

func produce(t *testing.T, c *kafkatest.Cluster, topic, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := c.Client(t, kgo.TransactionalID(topic+value), kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: 1, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatalf("producing: %v", err)
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatalf("committing: %v", err)
	}
}

func read(t *testing.T, c *kafkatest.Cluster, topic, group string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opts, err := kafka.Options(c.Kafka(), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for len(want) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("polling for %v: %v", want, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if len(want) == 0 || string(r.Value) != want[0] {
				t.Fatalf("got %q, want %v", r.Value, want)
			}
			want = want[1:]
		})
	}
}

func TestFake(t *testing.T) { roundTrip(t, kafkatest.Fake(t)) }

// TestVirtual is about the end, too: synctest fails when anything of the broker
// or its clients is left over.
func TestVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { roundTrip(t, kafkatest.Virtual(t)) })
}

func TestVirtualLeavesNothingOfAClientThatIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Virtual(t)
		cl := c.Client(t, kgo.DefaultProduceTopic("x"), kgo.AllowAutoTopicCreation())
		if err := cl.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestVirtualTimeIsTheBubbles: a group member that goes silent is expelled after
// its session timeout, and that costs no real time.
func TestVirtualTimeIsTheBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Virtual(t)
		topo := c.Topology(t, 1)
		c.CreateTopics(t, topo)
		member := c.Net.Host("member")
		cl := c.Client(t, kgo.Dialer(member.Dial), kgo.ConsumerGroup("g"), kgo.ConsumeTopics(topo.Events()), kgo.SessionTimeout(10*time.Second), kgo.DisableAutoCommit())
		go cl.PollFetches(t.Context())
		if _, err := c.Fake.WaitGroupStable(t.Context(), "g", 1); err != nil {
			t.Fatal(err)
		}
		member.Cut()
		begin := time.Now()
		if _, err := c.Fake.WaitGroupInfo(t.Context(), "g", func(g *kfake.GroupInfo) bool { return len(g.Members) == 0 }); err != nil {
			t.Fatal(err)
		}
		// The last heartbeat before the cut was at most 3 s ago.
		if took := time.Since(begin); took < 7*time.Second || took > 10*time.Second {
			t.Fatalf("the silent member was expelled after %s, want 7 to 10s", took)
		}
		member.Heal()
	})
}

func TestBrokersOfTheFakeDieAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { brokersDieAndComeBack(t, kafkatest.Virtual(t)) })
}

func brokersDieAndComeBack(t *testing.T, c *kafkatest.Cluster) {
	t.Helper()
	topo := c.Topology(t, 3)
	c.CreateTopics(t, topo)
	produce(t, c, topo.Events(), "a")
	for i := range c.Brokers {
		c.KillBroker(t, i)
		if up := known(t, c); up != len(c.Brokers)-1 {
			t.Fatalf("after killing broker %d, %d are known", i, up)
		}
		produce(t, c, topo.Events(), string(rune('b'+i)))
		c.StartBroker(t, i)
		if up := known(t, c); up != len(c.Brokers) {
			t.Fatalf("after starting broker %d, %d are known", i, up)
		}
	}
	c.RestartBroker(t, 0)
	read(t, c, topo.Events(), topo.Prefix()+"group", "a", "b", "c", "d")
}

// known waits until the cluster names as many brokers as accept connections.
func known(t *testing.T, c *kafkatest.Cluster) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := c.Client(t, kgo.MetadataMinAge(50*time.Millisecond))
	defer cl.Close()
	for {
		up := 0
		for _, addr := range c.Brokers {
			if accepts(ctx, c, addr) {
				up++
			}
		}
		meta, err := kadm.NewClient(cl).BrokerMetadata(kadm.WithAuthorizedOps(ctx))
		if err == nil && len(meta.Brokers) == up {
			return up
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d brokers accept connections, the cluster names %d (%v)", up, len(meta.Brokers), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func accepts(ctx context.Context, c *kafkatest.Cluster, addr string) bool {
	dial := c.Dial
	if dial == nil {
		dial = dialTCP
	}
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
