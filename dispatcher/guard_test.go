package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A panic over one record makes that record a dead letter; where it had been decided before, nothing is added.
func TestPanicOverARecord(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		a.look(0, func(n *number) {
			for i, decided := range []bool{false, true} {
				r := w.event("w", i)
				r.Offset = int64(i)
				n.out.received(r.Topic, r.Offset)
				d, err := record.FromEvent(r)
				if err != nil {
					t.Error(err)
				}
				it := n.item(d, r)
				n.guard(it, func() {
					if decided {
						n.die(time.Now(), it, record.Expired, "decided before")
					}
					panic("a bug")
				})
			}
		})
		w.until("both are dead", func() bool { return len(w.dead()) == 2 })
		a.quiesce()
		dead := w.dead()
		if len(dead) != 2 || dead[0].Reason != record.InvalidRecord || !strings.Contains(dead[0].Message, "a bug") || dead[1].Reason != record.Expired {
			t.Errorf("dead letters %+v", dead)
		}
	})
}
