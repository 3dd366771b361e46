package dispatcher

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/internal/record"
)

// The rounds hold every record once, in order within each partition, and at most
// one batch a partition: a single record of any size, or several below the limit.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*outgoing
		for i := range rapid.IntRange(0, 30).Draw(t, "records") {
			topic := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "topic")
			value := make([]byte, rapid.IntRange(0, 400).Draw(t, "size"))
			all = append(all, &outgoing{rec: &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: value}})
		}
		limit := rapid.SampledFrom([]int{0, 300, 1000}).Draw(t, "limit")

		type partition struct {
			topic  string
			number int32
		}
		got, want := map[partition][]*outgoing{}, map[partition][]*outgoing{}
		for _, r := range all {
			at := partition{r.rec.Topic, r.rec.Partition}
			want[at] = append(want[at], r)
		}
		for rest := all; len(rest) > 0; {
			round, after := split(rest, limit)
			if len(round) == 0 || len(round)+len(after) != len(rest) {
				t.Fatalf("of %d records %d went and %d stayed", len(rest), len(round), len(after))
			}
			bytes, count := map[partition]int{}, map[partition]int{}
			for _, r := range round {
				at := partition{r.rec.Topic, r.rec.Partition}
				got[at] = append(got[at], r)
				bytes[at] += record.Size(r.rec)
				count[at]++
			}
			for at, n := range count {
				if n > 1 && bytes[at] > limit {
					t.Fatalf("%d records of %d bytes go to %v at once, the limit is %d", n, bytes[at], at, limit)
				}
			}
			rest = after
		}
		for at := range want {
			for i := range want[at] {
				if got[at][i] != want[at][i] {
					t.Fatalf("record %d of %v is out of order", i, at)
				}
			}
		}
	})
}
