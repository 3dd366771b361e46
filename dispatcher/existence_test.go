package dispatcher

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// An event of a webhook that does not exist dies, when the configurations have been
// read to a watermark that was taken after the event came.
func TestUnknownWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a := w.start("a")
		a.owns(0)
		asked := w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: w.topo.Endpoints(), Observe: true, Count: -1})
		w.send("w", 0, 2)
		w.until("both are dead", func() bool { return len(w.dead()) == 2 })
		a.quiesce()
		if asked.Hits() < 2 {
			t.Error("the second event came after the question was asked, and was not asked for again")
		}
		for _, d := range w.dead() {
			if d.Reason != record.WebhookUnknown {
				t.Errorf("%s died as %s", d.ID, d.Reason)
			}
		}
		a.look(0, func(n *number) {
			if len(n.webhooks) != 0 {
				t.Errorf("%d webhooks are still held", len(n.webhooks))
			}
		})

		// It is made, and works.
		w.webhook("w")
		w.send("w", 2, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
	})
}

// A webhook that was made before its first event is never taken for unknown, however late its configuration is read:
//
//  1. the configuration is written, and is not read yet;
//  2. the event comes, and is looked at;
//  3. the configuration is read.
func TestWebhookMadeInTime(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		a, readOn := w.startUnread("w")
		w.send("w", 0, 2)
		w.until("the event was looked at", func() bool {
			waits := false
			a.look(0, func(n *number) { waits = n.webhooks["w"] != nil && n.webhooks["w"].lane() == 2 })
			return waits
		})
		time.Sleep(10 * time.Second)
		if len(w.dead()) > 0 {
			t.Fatal("the event died before the configurations were read to their end")
		}
		readOn()
		w.until("both are delivered", func() bool { return len(w.delivered("w")) == 2 })
		mustEqual(t, "sent", ids(w.receiver.Of("w")), eventIDs("w", 0, 2))
	})
}

// webhookUnread makes a webhook without reading the topic first, as Control does.
func (w *world) webhookUnread(id string) {
	w.t.Helper()
	e := w.endpoint(id)
	if err := w.keys.SealEndpoint(&e); err != nil {
		w.t.Fatal(err)
	}
	w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Partition: w.topo.PartitionFor(id), Key: []byte(id), Value: e.Marshal()})
}

// startUnread starts a dispatcher that reads no configurations, those of webhook id among them, until readOn.
func (w *world) startUnread(id string) (a *process, readOn func()) {
	w.t.Helper()
	a = w.start("a")
	a.owns(0)
	a.quiesce()
	endpoints := map[string][]int32{w.topo.Endpoints(): {0}}
	a.d.fetch.quick.PauseFetchPartitions(endpoints)
	a.d.fetch.patient.PauseFetchPartitions(endpoints)
	w.webhookUnread(id)
	return a, func() {
		a.d.fetch.quick.ResumeFetchPartitions(endpoints)
		a.d.fetch.patient.ResumeFetchPartitions(endpoints)
	}
}

// A webhook that is deleted takes everything of it along: what is queued, what
// waits for its next attempt, what is parked, and what comes.
func TestDeletedWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(500), func(t *testing.T, w *world) {
		w.webhook("queued", neverPauses)
		w.receiver.Answer("queued", kafkatest.After(5*time.Second, kafkatest.Always(200)))
		w.webhook("retried", neverPauses)
		w.webhook("parked")
		a := w.start("a")
		a.owns(0)
		w.do("parked", record.ActionPause)
		for _, id := range []string{"queued", "retried", "parked"} {
			w.send(id, 0, 3)
		}
		w.until("all are where they should be", func() bool {
			return len(w.receiver.Of("queued")) == 1 && len(w.retries("retried")) >= 3 && len(w.parked("parked")) == 3
		})
		requests := len(w.receiver.Of("retried"))
		for _, id := range []string{"queued", "retried", "parked"} {
			w.delete(id)
		}
		w.until("all are dead but the one in flight", func() bool { return len(w.dead()) == 8 })
		w.send("parked", 3, 1)
		w.until("what comes dies too", func() bool { return len(w.dead()) == 9 })
		time.Sleep(time.Minute)
		for _, d := range w.dead() {
			if d.Reason != record.WebhookDeleted {
				t.Errorf("%s died as %s", d.ID, d.Reason)
			}
		}
		if got := len(w.receiver.Of("retried")); got > requests+1 {
			t.Errorf("%d requests after the deletion", got-requests)
		}
		w.counts("parked", 0, 4, 0)
		for _, id := range []string{"retried", "parked"} {
			if s := w.state(id); !s.Healthy() {
				t.Errorf("state %s", s.Marshal())
			}
		}
		a.look(0, func(n *number) {
			if n.paused != 0 || len(n.webhooks) != 0 || n.flow.lanes != (amount{}) || n.flow.retries != (amount{}) || n.flow.returned != (amount{}) {
				t.Errorf("still held: %d paused, %d webhooks, lanes %+v, returned %+v, retries %+v", n.paused, len(n.webhooks), n.flow.lanes, n.flow.returned, n.flow.retries)
			}
		})
	})
}

// Commands for a webhook whose configuration has not been read yet wait for it, in their order; for one that does not exist they are refused.
func TestCommandsForANewWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		_, readOn := w.startUnread("w")
		for _, c := range []record.Command{
			{ID: "1", Webhook: "w", Action: record.ActionPause},
			{ID: "2", Webhook: "w", Action: record.ActionResume},
			{ID: "3", Webhook: "w", Action: record.ActionPause},
		} {
			w.produceCommand(c)
		}
		time.Sleep(10 * time.Second)
		mustEqual(t, "results before the configuration was read", w.results(), nil)
		readOn()
		w.until("all are done", func() bool { return len(w.results()) == 3 })
		mustEqual(t, "results", w.results(), []string{"1 done", "2 done", "3 done"})
		if !w.pausedBy("w", record.PauseManual) {
			t.Errorf("state %+v", w.state("w"))
		}
		if r := w.do("nobody", record.ActionPause); r.Result != record.ResultRefused {
			t.Errorf("a command for nobody: %+v", r)
		}
	})
}
