package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	}, func(format) bool { return false })
}

func newWebhooksResume(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume WEBHOOK",
		Short: "Send to a paused webhook again, what was parked first",
		Long: `Send to a paused webhook again: what was parked first, in order, then what is new. The count of failures in a row starts from 0.

The dispatcher that owns the webhook does it. The command waits for its answer, and with --follow, as always on a terminal, shows how the
parked events go out until none is left, or the webhook is paused again. Ctrl-C ends the watching only.`,
		Example: `  reenvio webhooks resume crm-orders
  reenvio webhooks resume crm-orders --follow -o json     # the result, then a line of JSON a second`,
	}
	follow := cmd.Flags().Bool("follow", false, "show how the parked events go out until none is left (on a terminal: always)")
	return newWebhooksAct(c, record.ActionResume, cmd, func(out format) bool {
		if cmd.Flags().Changed("follow") {
			return *follow
		}
		return c.terminal && out == formatTable
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

// newWebhooksAct makes a command that has the owner do something. follow says whether to show what comes of it.
func newWebhooksAct(c *cli, action record.Action, cmd *cobra.Command, follow func(format) bool) *cobra.Command {
	cmd.Args = oneArg("a webhook id")
	wait := waitFlag(cmd)
	reason := reasonFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := validWait(*wait); err != nil {
			return err
		}
		s, err := c.openForCommands(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		ctl := s.control(nil)
		if _, err := findWebhook(cmd.Context(), ctl, args[0]); err != nil {
			return err
		}
		if action == record.ActionPause && *reason == "" {
			view, err := s.getWebhook(cmd.Context(), args[0], false)
			if err != nil {
				return err
			}
			if view.State.HasPause(record.PauseManual) {
				fmt.Fprintf(c.stderr, "%s was paused by hand already (%s); that stays as it is.\n", args[0], clean(view.whyPaused(record.PauseManual)))
			}
		}
		result, err := act(cmd.Context(), ctl, *wait, record.Command{Webhook: args[0], Action: action, By: caller(), Reason: *reason})
		if err != nil {
			return err
		}
		answer := actResult{Webhook: args[0], Action: action, Result: result}
		if action == record.ActionResume && result.Result == record.ResultDone {
			view, err := s.getWebhook(cmd.Context(), args[0], false)
			if err != nil {
				return err
			}
			if view.pausedByConfiguration() {
				return c.stillPaused(view, answer, *out)
			}
		}
		if !follow(*out) {
			return c.printResult(answer, *out)
		}
		return c.followResult(cmd.Context(), s, answer, *out)
	}
	return cmd
}

// stillPaused is the end of a resume that has lifted what a person may lift, and could not lift the rest.
func (c *cli) stillPaused(v webhookView, r actResult, out format) error {
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.stdout, "resume of %s: %s\n", r.Webhook, clean(r.Detail))
	}
	fmt.Fprintf(c.stderr, "%s is %s: %s.\n", v.Endpoint.ID, v.statusText(), v.nextStep())
	return errNotDone
}

// act has a command done. That nobody has answered in time is a result too: the command stays written, and is done when somebody takes
// over the number.
func act(ctx context.Context, ctl *control.Control, wait time.Duration, command record.Command) (record.Result, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	result, err := ctl.Do(waiting, command)
	var pending *control.PendingError
	if ctx.Err() == nil && errors.As(err, &pending) {
		return record.Result{ID: pending.ID, Result: resultPending, Detail: unanswered(pending.Number, wait)}, nil
	}
	return result, err
}

// unanswered says why a command is pending; the two can't be told apart from here.
func unanswered(number int32, wait time.Duration) string {
	return fmt.Sprintf("no dispatcher owns number %d, or it has not answered within %s", number, wait)
}

func (c *cli) printResult(r actResult, out format) error {
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	} else {
		text := fmt.Sprintf("%s of %s %s", strings.ReplaceAll(string(r.Action), "_", "-"), r.Webhook, r.Result.Result)
		if r.Result.Result == resultPending {
			text = string(resultPending)
		}
		if r.Detail != "" {
			text += ": " + clean(r.Detail)
		}
		fmt.Fprintln(c.stdout, text)
	}
	return c.ended(r.Result)
}

// ended turns a result that was shown into an exit status.
func (c *cli) ended(r record.Result) error {
	if r.Result == record.ResultDone {
		return nil
	}
	if r.Result == resultPending {
		fmt.Fprintf(c.stderr, "The command %s is written, and is done when a dispatcher takes over the number.\n", r.ID)
	}
	return errNotDone
}

// waitFlag is how long to wait for the answer to a command.
func waitFlag(cmd *cobra.Command) *time.Duration {
	return durationFlag(cmd.Flags(), "wait", 10*time.Second, "how long to wait for the dispatcher's answer")
}

func validWait(wait time.Duration) error {
	if wait <= 0 {
		return usagef("--wait is %s: it must be longer than 0", wait)
	}
	return nil
}

func reasonFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("reason", "", "why, for the audit trail")
}
