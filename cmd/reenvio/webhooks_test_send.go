package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
)

// answerSlack is what the owner may take on top of an endpoint's timeout before its answer is there.
const answerSlack = 10 * time.Second

func newWebhooksTest(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test WEBHOOK",
		Short: "Send one test event to a webhook, and show what it answers",
		Long: `Send one event of type reenvio.test to a webhook, and show what it answers. The dispatcher that owns the webhook sends it, signed and with
the webhook's headers, also while it is paused. It is no attempt: it is not tried again, is not logged, and does not count as a failure.
A webhook that is held by hand is not sent to.

Exit status 1 says that the endpoint did not accept it, or that nobody has sent it yet.`,
		Example: `  reenvio webhooks test crm-orders
  reenvio webhooks test crm-orders && reenvio webhooks resume crm-orders`,
		Args: oneArg("a webhook id"),
	}
	wait := durationFlag(cmd.Flags(), "wait", 0, "how long to wait for the answer (default: the webhook's timeout and 10s more)")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *wait < 0 {
			return usagef("--wait is %s: it must be longer than 0", *wait)
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		ctl := s.control(nil)
		endpoint, err := findWebhook(cmd.Context(), ctl, args[0])
		if err != nil {
			return err
		}
		patience := cmp.Or(*wait, endpoint.TimeoutOr()+answerSlack)
		result, err := act(cmd.Context(), ctl, patience, record.Command{Webhook: args[0], Action: record.ActionTest, By: caller()})
		if err != nil {
			return err
		}
		return c.printResult(actResult{Webhook: args[0], Action: record.ActionTest, Result: result}, *out)
	}
	return cmd
}
