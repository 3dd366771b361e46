package dispatcher

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// A webhook takes 100 of its parked events at a time, of the thousands that a fetch
// brings: what one has brought is not fetched again for the next.
func TestParkedEventsAreFetchedOnce(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		const n = 900
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.do("w", record.ActionPause)
		w.send("w", 0, n)
		w.until("they are parked", func() bool { return a.metric("parked_records") == n })
		a.quiesce()
		var fetches atomic.Int64
		w.cluster.Fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.Fake.KeepControl()
			for _, topic := range r.(*kmsg.FetchRequest).Topics {
				if info := w.cluster.Fake.TopicIDInfo(topic.TopicID); info != nil && info.Topic == w.topo.Parked() {
					fetches.Add(1)
				}
			}
			return nil, nil, false
		})
		w.do("w", record.ActionResume)
		w.until("all are sent", func() bool { return len(w.receiver.Of("w")) == n })
		if got := fetches.Load(); got < 1 || got > 4 { // without: 12 and more
			t.Errorf("%d fetches", got)
		}
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, n))
	})
}
