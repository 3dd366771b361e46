package e2e_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestFiveAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kafkatest.Virtual(t), 3, kafkatest.Always(500))
		w.webhook("down")
		w.dispatch("a")
		w.send("down", 0, 1)
		time.Sleep(time.Minute)
		got := w.receiver.Of("down")
		for _, r := range got {
			t.Log(r.Attempt, r.Start.Sub(got[0].Start), r.Signature)
		}
		if len(got) != 5 {
			t.Fatalf("%d requests, want 5", len(got))
		}
	})
}
