package dispatcher

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// produceCommand writes a command and does not wait for it.
func (w *world) produceCommand(c record.Command) {
	w.t.Helper()
	w.produce(&kgo.Record{Topic: w.topo.Commands(), Partition: w.topo.PartitionFor(c.Webhook), Key: []byte(c.Webhook), Value: c.Marshal()})
}

// results are the commands that were answered, and how, in order.
func (w *world) results() (all []string) {
	w.t.Helper()
	for _, r := range w.committed(w.topo.Commands()) {
		if result, err := record.ParseResult(r.Value); err == nil {
			all = append(all, result.ID+" "+string(result.Result))
		}
	}
	return all
}

func TestRefusedForNumbers(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		w.start("a").owns(0)
		version := int64(1)
		for i, c := range []struct {
			key     string
			command record.Command
			says    string
		}{
			{"#number", record.Command{Action: record.ActionHold, Scope: "planet", Value: "earth"}, `scope "planet" is unknown`},
			{"#number", record.Command{Action: record.ActionHold}, `scope "" is unknown`},
			{"#number", record.Command{Action: record.ActionHold, Scope: record.HoldTenant}, "needs a value, the tenant"},
			{"#number", record.Command{Action: record.ActionHold, Scope: record.HoldAll, Value: "x"}, "takes no value"},
			{"#number", record.Command{Action: record.ActionHold, Scope: record.HoldWebhook, Value: "w"}, "the key of the webhook, w"},
			{"#number", record.Command{Action: record.ActionRelease, Scope: record.HoldHost}, "needs a value, the host"},
			{"#number", record.Command{Action: record.ActionRelease, Scope: record.HoldWebhook, Value: "w"}, "the key of the webhook, w"},
			{"#number", record.Command{Action: record.ActionHold, Scope: record.HoldAll, ExpectVersion: &version}, "no version"},
			{"#number", record.Command{Action: record.ActionHold, Scope: record.HoldAll, Webhook: "w"}, `its key is "#number"`},
			{"#number", record.Command{Action: record.ActionPause}, "pause is a command for a webhook"},
			{"#number", record.Command{Action: "explode"}, "explode"},
			{"#number", record.Command{Action: record.ActionSkip, Value: "here"}, `reading place "here"`},
			{"#number", record.Command{Action: record.ActionSkip, Value: "webhooks.events/0/-1"}, "reading place"},
			{"#number", record.Command{Action: record.ActionSkip, Value: w.topo.Events() + "/1/0"}, "is not of number 0"},
			{"#number", record.Command{Action: record.ActionSkip, Value: w.topo.DLQ() + "/0/0"}, "no topic that events wait in"},
			{"#number", record.Command{Action: record.ActionSkip, Value: w.topo.Events() + "/0/7"}, "not reached yet"},
			{"#number", record.Command{Action: record.ActionSkip, Value: w.topo.Parked() + "/0/7"}, "not reached yet"},
			{"w", record.Command{Action: record.ActionHold, Webhook: "w"}, `scope "" is unknown`},
			{"w", record.Command{Action: record.ActionHold, Webhook: "w", Scope: record.HoldWebhook, Value: "x"}, "can't hold or release webhook x"},
			{"w", record.Command{Action: record.ActionHold, Webhook: "w", Scope: record.HoldAll}, "can't hold or release all"},
			{"w", record.Command{Action: record.ActionRelease, Webhook: "w", Scope: record.HoldTenant, Value: "acme"}, "can't hold or release tenant acme"},
			{"w", record.Command{Action: record.ActionSkip, Webhook: "w", Value: "x"}, "skip is a command for a number"},
			{"w", record.Command{Action: record.ActionDiscardParked, Webhook: "w"}, "needs a time"},
			{"nobody", record.Command{Action: record.ActionHold, Webhook: "nobody", Scope: record.HoldWebhook, Value: "nobody"}, "there is no webhook"},
		} {
			id := fmt.Sprint(i)
			c.command.ID = id
			w.produce(&kgo.Record{Topic: w.topo.Commands(), Key: []byte(c.key), Value: c.command.Marshal()})
			w.until("command "+id+" is answered", func() bool {
				for _, r := range w.committed(w.topo.Commands()) {
					result, err := record.ParseResult(r.Value)
					if err != nil || result.ID != id {
						continue
					}
					if result.Result != record.ResultRefused || !strings.Contains(result.Detail, c.says) {
						t.Errorf("%+v: %+v, want refused with %q", c.command, result, c.says)
					}
					return true
				}
				return false
			})
		}
		if s := w.numberState(); len(s.Holds) != 0 {
			t.Errorf("a refused command has changed the number's state: %+v", s)
		}
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
	})
}
