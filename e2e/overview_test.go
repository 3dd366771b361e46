package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

// What `reenvio status` reads from Kafka alone is what two dispatchers do.
func TestTheOverviewOfAPipeline(t *testing.T) {
	suite(t, kafkatest.Always(http.StatusOK), func(w *world) {
		w.webhook("fine")
		w.webhook("down")
		w.webhook("slow", neverPause, func(e *record.Endpoint) { e.Timeout = record.Duration(5 * time.Second) })
		w.receiver.Answer("down", kafkatest.Always(http.StatusInternalServerError))
		w.receiver.Answer("slow", func(*kafkatest.Request) kafkatest.Response { return kafkatest.Response{Hang: true} })
		w.dispatch("a")
		w.dispatch("b")
		w.untilOverview("for both to share the numbers", func(o *overview.Overview) bool {
			return o.OK && o.OwnedNumbers == numbers && len(o.Dispatchers) == 2 && len(o.Dispatchers[0].Numbers) == numbers/2 && o.Webhooks == 3
		})

		w.send("fine", 0, 20)
		w.send("slow", 0, 5)
		w.untilOverview("for the slow one to be all that is in flight", func(o *overview.Overview) bool {
			n := o.Numbers[w.topo.PartitionFor("slow")]
			return o.Backlog == 5 && n.Backlog == 5 && n.IncompleteWebhook == "slow" && n.IncompleteEventID == "evt-slow-0" && n.IncompleteReason == overview.InFlight
		})
		w.untilOverview("for its retry", func(o *overview.Overview) bool {
			n := o.Numbers[w.topo.PartitionFor("slow")]
			return o.RetryTiers[0].Waiting == 1 && !o.RetryTiers[0].NextDueAt.IsZero() && n.LastCommitBy == n.Owner
		})

		w.send("down", 0, 30)
		w.untilOverview("for the pause, with all parked", func(o *overview.Overview) bool {
			return o.OK && o.WebhooksPaused == 1 && o.ParkedEvents == 30 && o.Paused[0].Webhook == "down" && o.Paused[0].LastStatus == http.StatusInternalServerError
		})

		w.stop("a")
		w.untilOverview("for the other to have them all", func(o *overview.Overview) bool {
			return o.OwnedNumbers == numbers && len(o.Dispatchers) == 1 && o.Dispatchers[0].Instance == "b"
		})
		w.stop("b")
		o := w.untilOverview("for nobody to be there", func(o *overview.Overview) bool { return !o.OK && o.OwnedNumbers == 0 })
		if n := o.Numbers[w.topo.PartitionFor("slow")]; n.Owner != "" || n.Backlog > 0 && n.IncompleteReason != overview.NoOwner {
			t.Errorf("got %+v", n)
		}
	})
}

func (w *world) untilOverview(what string, so func(*overview.Overview) bool) *overview.Overview {
	w.t.Helper()
	var o *overview.Overview
	w.until(what, time.Minute, func() bool {
		var err error
		if o, err = overview.Read(w.t.Context(), overview.Options{Client: w.client, Topology: w.topo, Group: w.group}); err != nil {
			w.t.Fatal(err)
		}
		return so(o)
	})
	return o
}
