package kafka

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestNextFollowsTheLeader(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	put(t, cl, "a")
	var epoch atomic.Int32 // of the last request
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		epoch.Store(req.(*kmsg.FetchRequest).Topics[0].Partitions[0].CurrentLeaderEpoch)
		return true
	}})
	r := NewReader(cl, topic, 0, 0)
	next(t, r) // knows the leader now
	last := epoch.Load()
	for i, v := range []string{"b", "c", "d"} {
		to := (cluster.LeaderFor(topic, 0) + 1) % 3
		if err := cluster.MoveTopicPartition(topic, 0, to); err != nil {
			t.Fatal(err)
		}
		put(t, newClient(t, cluster), v)
		if batch := next(t, r); len(batch.Records) != 1 || string(batch.Records[0].Value) != v || batch.Next != int64(i+2) {
			t.Errorf("after a move to broker %d: %+v", to, batch)
		}
		if now := epoch.Load(); now <= last { // else a leader of the past would answer without what is new
			t.Errorf("after a move to broker %d: asked with epoch %d after %d", to, now, last)
		}
		last = epoch.Load()
	}
}

func TestNextSurvivesTheLossOfTheLeader(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	put(t, cl, "a")
	r := NewReader(cl, topic, 0, 0)
	next(t, r)
	if err := cluster.RemoveNode(cluster.LeaderFor(topic, 0)); err != nil {
		t.Fatal(err)
	}
	put(t, newClient(t, cluster), "b")
	if batch := next(t, r); read(batch.Records) != "1:b" {
		t.Errorf("got %+v", batch)
	}
}

// Each of these is an answer of a broker that knows less, or more, than the client.
func TestNextAsksAgain(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	put(t, cl, "a")
	for _, answer := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.InconsistentTopicID,
		kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.ReplicaNotAvailable,
	} {
		r := NewReader(cl, topic, 0, 0)
		fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: answer, Count: 2})
		metadata := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Observe: true, Count: -1})
		if batch := next(t, r); read(batch.Records) != "0:a" {
			t.Errorf("%s: %+v", answer.Message, batch)
		}
		if fault.Hits() != 2 || metadata.Hits() == 0 {
			t.Errorf("%s: met %d times, metadata asked for %d times", answer.Message, fault.Hits(), metadata.Hits())
		}
		metadata.Remove()
	}
	lookups := cluster.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.NotLeaderForPartition},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Err: kerr.LeaderNotAvailable},
	)
	if batch := next(t, NewReader(cl, topic, 0, 0)); read(batch.Records) != "0:a" || lookups.Hits() != 2 {
		t.Errorf("no leader at first: %+v", batch)
	}
}

func TestNextTellsAtOnceWhatWillNotPass(t *testing.T) {
	cluster := startCluster(t)
	cl := newClient(t, cluster)
	r := NewReader(cl, topic, 0, 0)
	for _, answer := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.UnknownServerError} {
		fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: answer, Count: -1})
		if _, err := r.Next(t.Context(), 0, 1<<20); !errors.Is(err, answer) || fault.Hits() != 1 {
			t.Errorf("%s: %v, after %d fetches", answer.Message, err, fault.Hits())
		}
		fault.Remove()
	}
	cl.Close()
	if _, err := r.Next(t.Context(), 0, 1<<20); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("with a closed client: %v", err)
	}
}

// A cluster that stays away is told after a minute: whoever reads in a loop must be able to log it.
func TestNextGivesUpAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, dial := startVirtual(t)
		cl := clientOf(t, Config{Brokers: cluster.ListenAddrs(), InstanceID: "test", Dial: dial})
		put(t, cl, "a")
		r := NewReader(cl, topic, 0, 0)
		fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.NotLeaderForPartition, Count: -1})
		began := time.Now()
		_, err := r.Next(t.Context(), 0, 1<<20)
		if took := time.Since(began); !errors.Is(err, kerr.NotLeaderForPartition) || took < time.Minute || took > time.Minute+2*maxBackoff {
			t.Errorf("after %v: %v", took, err)
		}
		if hits := fault.Hits(); hits < 100 || hits > 160 {
			t.Errorf("%d requests in a minute", hits)
		}
		fault.Remove()
		if batch := next(t, r); read(batch.Records) != "0:a" {
			t.Errorf("afterwards: %+v", batch)
		}
	})
}
