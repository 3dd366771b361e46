package dispatcher

import (
	"slices"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

func TestDelivers(t *testing.T) {
	inWorld(t, 1, kafkatest.FailFirst(1), func(t *testing.T, w *world) {
		w.webhook("w")
		p := w.start("a")
		p.owns(0)
		w.send("w", 0, 3)
		w.until("six requests", func() bool { return len(w.receiver.Of("w")) == 6 })
		p.quiesce()
		mustEqual(t, "first attempts", ids(w.receiver.Of("w"))[:3], eventIDs("w", 0, 3))
		mustEqual(t, "delivered", slices.Sorted(slices.Values(w.delivered("w"))), eventIDs("w", 0, 3))
		w.oneChain("w")
	})
}
