package control

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// PausedBy is the command that paused a webhook by hand: who wanted it, and why.
// Of several since it was last resumed it is the newest with a reason, or the
// newest where none has one. False: there is none, or retention has taken it.
func (c *Control) PausedBy(ctx context.Context, id string) (by record.Command, found bool, err error) {
	asked := map[string]record.Command{}
	err = c.read(ctx, c.topo.Commands(), c.topo.PartitionFor(id), func(r *kgo.Record) {
		if string(r.Key) != id {
			return
		}
		if command, err := record.ParseCommand(r.Value); err == nil {
			asked[command.ID] = command
		}
		result, err := record.ParseResult(r.Value)
		if err != nil || result.Result != record.ResultDone {
			return
		}
		switch command := asked[result.ID]; {
		case command.Action == record.ActionResume:
			by, found = record.Command{}, false
		case command.Action == record.ActionPause && (command.Reason != "" || by.Reason == ""):
			by, found = command, true
		}
	})
	return by, found, err
}
