package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

func newWebhooksPause(c *cli) *cobra.Command {
	return newWebhooksAct(c, record.ActionPause, &cobra.Command{
		Use:   "pause WEBHOOK",
		Short: "Stop sending to a webhook; its events are kept",
		Long: `Stop sending to a webhook. No request starts from then on; what is queued, due or new is parked, in order, until the webhook is resumed.

The dispatcher that owns the webhook does it. The command waits for its answer.`,
		Example: `  reenvio webhooks pause crm-orders --reason 'maintenance until 18:00'`,
	})
}

func newWebhooksResume(c *cli) *cobra.Command {
	return newWebhooksAct(c, record.ActionResume, &cobra.Command{
		Use:   "resume WEBHOOK",
		Short: "Send to a paused webhook again, what was parked first",
		Long: `Send to a paused webhook again: what was parked first, in order, then what is new. The count of failures in a row starts from 0.

The dispatcher that owns the webhook does it. The command waits for its answer.`,
		Example: `  reenvio webhooks resume crm-orders`,
	})
}

// resultPending is what a program reads when nobody has answered yet.
const resultPending record.ResultCode = "pending"

// actResult is what came of a command.
type actResult struct {
	Webhook string        `json:"webhook"`
	Action  record.Action `json:"action"`
	record.Result
}

func newWebhooksAct(c *cli, action record.Action, cmd *cobra.Command) *cobra.Command {
	cmd.Args = oneArg("a webhook id")
	wait := cmd.Flags().Duration("wait", 10*time.Second, "how long to wait for the dispatcher's answer")
	reason := cmd.Flags().String("reason", "", "why, for the audit trail")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *wait <= 0 {
			return usagef("--wait is %s: it must be longer than 0", *wait)
		}
		s, err := c.open(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		if err := s.verify(cmd.Context()); err != nil {
			return err
		}
		ctl := s.control(nil)
		if _, err := findWebhook(cmd.Context(), ctl, args[0]); err != nil {
			return err
		}
		result, err := act(cmd.Context(), ctl, *wait, record.Command{Webhook: args[0], Action: action, By: caller(), Reason: *reason})
		if err != nil {
			return err
		}
		return c.printResult(actResult{Webhook: args[0], Action: action, Result: result}, *out)
	}
	return cmd
}

// act has a command done. That nobody has answered in time is a result too: the command stays written, and is done when somebody takes
// over the number.
func act(ctx context.Context, ctl *control.Control, wait time.Duration, command record.Command) (record.Result, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	result, err := ctl.Do(waiting, command)
	var pending *control.PendingError
	if ctx.Err() == nil && errors.As(err, &pending) {
		return record.Result{ID: pending.ID, Result: resultPending, Detail: fmt.Sprintf("no dispatcher owns number %d", pending.Number)}, nil
	}
	return result, err
}

func (c *cli) printResult(r actResult, out format) error {
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	} else {
		text := fmt.Sprintf("%s of %s %s", r.Action, r.Webhook, r.Result.Result)
		if r.Result.Result == resultPending {
			text = string(resultPending)
		}
		if r.Detail != "" {
			text += ": " + clean(r.Detail)
		}
		fmt.Fprintln(c.stdout, text)
	}
	if r.Result.Result == record.ResultDone {
		return nil
	}
	if r.Result.Result == resultPending {
		fmt.Fprintf(c.stderr, "The command %s is written, and is done when a dispatcher takes over the number.\n", r.ID)
	}
	return errNotDone
}
