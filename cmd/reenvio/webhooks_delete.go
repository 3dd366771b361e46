package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

// deleteResult is what a program reads.
type deleteResult struct {
	Webhook string            `json:"webhook"`
	Result  record.ResultCode `json:"result"`
	Parked  int64             `json:"parked"` // events that lay in the parked topic
}

func newWebhooksDelete(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete WEBHOOK",
		Short: "Delete a webhook; what waits for it dies",
		Long: `Delete a webhook. All its events that wait, in its queue, for a retry or parked, die as webhook_deleted: each becomes a dead letter, which
can be sent again with ` + "`reenvio dlq redrive`" + ` if a webhook with this id is created anew. So does each that comes later.

To stop sending for a while, and keep the events, use ` + "`reenvio webhooks pause`" + `.`,
		Example: `  reenvio webhooks delete crm-orders
  reenvio webhooks delete crm-orders --yes      # in scripts`,
		Args: oneArg("a webhook id"),
	}
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, ctx := args[0], cmd.Context()
		if err := record.ValidWebhookID(id); err != nil {
			return usageError{err}
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		ctl := s.control(nil)
		// One that can't be read has an ETag too, and can be deleted.
		_, etag, err := ctl.GetEndpoint(ctx, id)
		if etag == control.Absent {
			return whereToLook(err)
		}
		state, _, err := ctl.GetState(ctx, id)
		if err != nil {
			return err
		}
		parked := parkedCount(state)
		question := fmt.Sprintf("The waiting events of %s, %d of them parked, will die as webhook_deleted. Delete %[1]s?", id, parked)
		if err := c.confirm(ctx, *yes, question); err != nil {
			return err
		}
		err = ctl.DeleteEndpoint(ctx, id, etag)
		if errors.Is(err, control.ErrConflict) {
			return fmt.Errorf("%s was not deleted: somebody has changed it meanwhile; look at it (`reenvio webhooks get %[1]s`) and delete it again", id)
		}
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, deleteResult{id, record.ResultDone, parked})
		}
		_, err = fmt.Fprintf(c.stdout, "Deleted %s. Its waiting events, %d of them parked, die as webhook_deleted: `reenvio dlq list --webhook %[1]s` lists them.\n", id, parked)
		return err
	}
	return cmd
}
