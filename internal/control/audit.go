package control

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// LastDone is the newest command of an action that the owner of a webhook has done
// for it: who wanted it, and why. False: there is none, or retention has taken it.
func (c *Control) LastDone(ctx context.Context, id string, action record.Action) (last record.Command, found bool, err error) {
	asked := map[string]record.Command{}
	err = c.read(ctx, c.topo.Commands(), c.topo.PartitionFor(id), func(r *kgo.Record) {
		if string(r.Key) != id {
			return
		}
		if command, err := record.ParseCommand(r.Value); err == nil && command.Action == action {
			asked[command.ID] = command
		}
		if result, err := record.ParseResult(r.Value); err == nil && result.Result == record.ResultDone {
			if command, ok := asked[result.ID]; ok {
				last, found = command, true
			}
		}
	})
	return last, found, err
}
