package topology

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// The vectors of Apache Kafka's own test, UtilsTest.testMurmur2.
func TestMurmur2IsJavas(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

// Producers in Go that know nothing of Reenvio use kgo's default partitioner.
func TestPartitionForIsThatOfKgosDefault(t *testing.T) {
	partitioner, ok := kgo.UniformBytesPartitioner(64<<10, true, true, nil).ForTopic("any").(kgo.TopicBackupPartitioner)
	if !ok {
		t.Fatal("kgo's default partitioner has another shape now")
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(1, maxPartitions).Draw(t, "partitions")
		webhook := rapid.StringMatching(`[A-Za-z0-9._:-]{1,256}`).Draw(t, "webhook")
		topo := &Topology{cfg: Config{Partitions: n}}
		want := partitioner.PartitionByBackup(&kgo.Record{Key: []byte(webhook)}, int(n), nil)
		if got := topo.PartitionFor(webhook); int(got) != want {
			t.Fatalf("PartitionFor(%q) of %d = %d, kgo says %d", webhook, n, got, want)
		}
	})
}
