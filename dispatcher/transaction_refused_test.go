package dispatcher

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// limit changes how large a batch of a topic may be, behind the dispatcher's back.
func (w *world) limit(topic string, bytes int) {
	w.t.Helper()
	v := strconv.Itoa(bytes)
	_, err := kadm.NewClient(w.client).AlterTopicConfigs(w.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &v}}, topic)
	if err != nil {
		w.t.Fatal(err)
	}
}

// noise is a value that no compression makes smaller, another for each seed.
func noise(seed, n int) []byte {
	rnd := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	_, _ = rnd.Read(b)
	return b
}

// A record that the broker refuses for its size dies as too_large; the others of its batch go their way, no request is
// made again, and the cycle does not fail for ever.
func TestRefusedRecord(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("small", neverPauses)
		w.webhook("big", neverPauses)
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		w.limit(w.topo.Retry(2*time.Second), 4000)

		big := w.event("big", 1)
		big.Value = noise(1, 5000)
		// Before and behind it in one batch.
		w.produce(w.event("small", 0), w.event("big", 0), big, w.event("big", 2), w.event("small", 1))
		w.until("four are delivered", func() bool { return len(w.delivered("small"))+len(w.delivered("big")) == 4 })
		p.quiesce()

		w.counts("small", 4, 4, 2)
		w.counts("big", 5, 6, 2) // one tells of the death
		w.oneChain("small")
		w.oneChain("big")
		dead := w.dead()
		if len(dead) != 1 {
			t.Fatalf("%d dead letters, want 1", len(dead))
		}
		if d := dead[0]; d.Reason != record.TooLarge || d.ID != eventID("big", 1) || d.Attempts != 1 || !bytes.Equal(d.Value, big.Value) {
			t.Errorf("dead letter %s of %s after %d attempts, %d bytes", d.Reason, d.ID, d.Attempts, len(d.Value))
		}
		for i, a := range w.attempts("big") {
			if told := a.Outcome == record.Dead && strings.HasPrefix(a.Error, "too_large: "); told != (a.EventID == eventID("big", 1) && a.Attempt == 0) {
				t.Errorf("attempt record %d of %s: %s, %s", i, a.EventID, a.Outcome, a.Error)
			}
		}
		if n := p.metric("dlq_records_total"); n != 1 {
			t.Errorf("%v dead letters are counted, want 1", n)
		}
	})
}

// The largest record that the events topic takes has no room for the header of a move: in the wrong partition it dies, with
// all that it had.
func TestLargestEventInTheWrongPartition(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		id := w.onEach(2)[1]
		r := w.event(id, 0)
		r.Partition = 0
		setHeader(r, "x-own", "kept")
		r.Value = noise(1, 5000)
		behind := w.event(id, 1)
		behind.Partition = 0
		w.produce(r, behind)
		w.limit(w.topo.Events(), 5000)
		p := w.start("a")
		w.until("the next is delivered", func() bool { return len(w.delivered(id)) == 1 })
		p.quiesce()
		dead := w.dead()
		if len(dead) != 1 {
			t.Fatalf("%d dead letters, want 1", len(dead))
		}
		if d := dead[0]; d.Reason != record.TooLarge || !strings.Contains(d.Message, "wrong partition") || !bytes.Equal(d.Value, r.Value) || !slices.EqualFunc(d.Headers, r.Headers, sameHeader) {
			t.Errorf("it died as %s: %s; %d bytes, headers %s", d.Reason, d.Message, len(d.Value), d.Headers)
		}
		if all := w.attempts(id); len(all) != 2 || all[0].Outcome != record.Dead || all[0].EventID != eventID(id, 0) {
			t.Errorf("its death is on record as %+v", all)
		}
	})
}

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }

// Many refused records cost a few failed cycles together, not some each: nobody waits for them for long.
func TestRefusedRecordsTogether(t *testing.T) {
	inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
		ids := w.onEach(2, neverPauses)
		w.receiver.Answer(ids[0], kafkatest.Always(500))
		p := w.start("a")
		p.owns(0, 1)
		p.quiesce()
		w.limit(w.topo.Retry(2*time.Second), 4000)
		const n = 50
		for i := range n {
			r := w.event(ids[0], i)
			r.Value = noise(i, 5000)
			w.produce(r)
		}
		longest := time.Duration(0)
		for i := range 60 {
			sent := time.Now()
			w.send(ids[1], i, 1)
			w.until("the other one's event is delivered", func() bool { return len(w.delivered(ids[1])) == i+1 })
			longest = max(longest, time.Since(sent))
		}
		w.until("all that is refused is dead", func() bool { return len(w.dead()) == n })
		if longest > 3*time.Second {
			t.Errorf("an event of another webhook waited %s, through %v aborted cycles", longest, p.metric("cycles_total", "aborted"))
		}
		w.oneChain(ids[0])
	})
}

// Where even a dead letter with its value is refused, one without it says where the value lies.
func TestRefusedDeadLetter(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses, func(e *record.Endpoint) { e.MaxAttempts = 1 })
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		w.limit(w.topo.DLQ(), 4000)

		r := w.event("w", 0)
		r.Value = noise(1, 5000)
		w.produce(r, w.event("w", 1))
		w.until("both are dead", func() bool { return len(w.dead()) == 2 })
		p.quiesce()

		w.counts("w", 2, 2, 0)
		dead := w.dead()
		for _, d := range dead {
			if d.Reason != record.AttemptsExhausted {
				t.Errorf("%s died as %s", d.ID, d.Reason)
			}
		}
		if i := indexOf(dead, eventID("w", 0)); i < 0 || len(dead[i].Value) != 0 || dead[i].ValueDropped != 5000 || !bytes.Contains([]byte(dead[i].Message), []byte(dead[i].Source.String())) {
			t.Errorf("the dead letter of the large event: %+v", dead)
		}
		if len(w.dead()) != 2 || p.d.cycle.trouble() != "" {
			t.Errorf("the cycle fails: %s", p.d.cycle.trouble())
		}
	})
}

// A dead letter that its topic refuses in every form (the topic was made compacted, say) is written
// when the topic takes it, and nothing is lost. Readiness says why nothing is committed until then.
func TestDeadLetterRefusedInEveryForm(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses, func(e *record.Endpoint) { e.MaxAttempts = 1 })
		p := w.start("a")
		p.owns(0)
		p.quiesce()
		refused := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.topo.DLQ(), Err: kerr.InvalidRecord, Count: -1})
		w.send("w", 0, 1)
		time.Sleep(30 * time.Second)
		says(t, "ready", p.d.Ready(), "INVALID_RECORD")
		if n := refused.Hits(); n > 100 {
			t.Errorf("it was tried %d times in 30s", n)
		}
		refused.Remove()
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		w.counts("w", 1, 1, 0)
	})
}

func indexOf(dead []record.DeadLetter, id string) int {
	for i, d := range dead {
		if d.ID == id {
			return i
		}
	}
	return -1
}

// An event of the largest size that is let in can be delivered, retried and buried.
func TestLargestEvent(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses, func(e *record.Endpoint) { e.MaxAttempts = 2 })
		p := w.start("a")
		p.owns(0)
		r := w.event("w", 0)
		r.Value = noise(1, record.MaxEventBytes-1000)
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "x-own", Value: []byte("1")})
		w.produce(r)
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		if d := w.dead()[0]; d.Reason != record.AttemptsExhausted || !bytes.Equal(d.Value, r.Value) || d.Attempts != 2 {
			t.Errorf("dead letter %s after %d attempts, %d bytes", d.Reason, d.Attempts, len(d.Value))
		}
	})
}

// An event that is larger than a record may be, and fits only because its producer compressed it well, is retried and
// buried with its value all the same.
func TestWellCompressedEvent(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("w", neverPauses, func(e *record.Endpoint) { e.MaxAttempts = 2 })
		p := w.start("a")
		p.owns(0)
		r := w.event("w", 0)
		r.Value = []byte(hex.EncodeToString(noise(1, 900<<10))) // gzip halves it, snappy does nothing
		gzip := w.cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20),
			kgo.ProducerBatchCompression(kgo.GzipCompression().WithLevel(9)))
		if err := gzip.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.until("it is dead", func() bool { return len(w.dead()) == 1 })
		if d := w.dead()[0]; d.Reason != record.AttemptsExhausted || !bytes.Equal(d.Value, r.Value) || d.Attempts != 2 {
			t.Errorf("dead letter %s after %d attempts, %d bytes: %s", d.Reason, d.Attempts, len(d.Value), d.Message)
		}
	})
}
