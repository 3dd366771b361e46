package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestSuccesses(t *testing.T) {
	kept := func(s successes) (n int) {
		for i := range 10_000 {
			id := fmt.Sprintf("evt-%d", i)
			first, again := s.keep(id), s.keep(id)
			if first != again {
				t.Fatalf("%s: the same event is kept and not kept", s)
			}
			if first {
				n++
			}
		}
		return n
	}
	if n := kept(successesAll); n != 10_000 {
		t.Errorf("all keeps %d of 10,000", n)
	}
	if n := kept(successesOff); n != 0 {
		t.Errorf("off keeps %d of 10,000", n)
	}
	if n := kept(successesSampled); n < 50 || n > 200 {
		t.Errorf("sampled keeps %d of 10,000, want about 100", n)
	}
	for choice, ok := range map[string]bool{"all": true, "sampled": true, "off": true, "": false, "none": false, "All": false} {
		if err := (Attempts{Successes: choice}).Validate(); (err == nil) != ok {
			t.Errorf("attempts.successes %q: %v", choice, err)
		}
	}
	if err := DefaultAttempts().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

// Deliveries without a record count as uncommitted, too.
func TestSuccessesOffUncommitted(t *testing.T) {
	inWorld(t, 1, kafkatest.After(100*time.Millisecond, kafkatest.Always(200)), func(t *testing.T, w *world) {
		w.webhook("w")
		wi := &wire{}
		a := w.start("a", wired(wi), func(o *Options) { o.Attempts.Successes = "off" })
		a.owns(0)
		w.send("w", 0, 1)
		time.Sleep(time.Second)
		a.quiesce()
		w.send("w", 1, 900)
		time.Sleep(time.Second)
		before := len(w.receiver.Of("w"))
		wi.loseRequests(kmsg.EndTxn, -1)
		wi.loseRequests(kmsg.AddOffsetsToTxn, -1)
		wi.loseRequests(kmsg.TxnOffsetCommit, -1)
		time.Sleep(20 * time.Second)
		if n := len(w.receiver.Of("w")) - before; n > 40 {
			t.Errorf("%d requests in 20s without a commit, where 2s allow some 25", n)
		}
		wi.heal()
	})
}
