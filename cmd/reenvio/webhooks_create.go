package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

func newWebhooksCreate(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --url URL [--id WEBHOOK]",
		Short: "Create a webhook",
		Long: `Create a webhook. Its id is the key of its events on the topic.

Secrets, the URL and header values are encrypted with the keyset before they are written to Kafka.`,
		Example: `  reenvio webhooks create --id crm-orders --url https://crm.example.com/hooks/orders
  reenvio webhooks create --id crm-orders --url https://crm.example.com/hooks/orders \
      --secret @secret.txt --header 'Authorization: Bearer abc' --max-attempts 8 --timeout 10s`,
		Args: noArgs,
	}
	id := cmd.Flags().String("id", "", "the webhook's id: 1 to 256 characters of A-Za-z0-9._:- (default: one is made)")
	fields := newEndpointFlags(cmd.Flags())
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("id") { // an empty one is a script's mistake, and refused below
			*id = "wh_" + strings.ToLower(rand.Text())
		}
		endpoint, err := fields.build(cmd.Context(), c, *id)
		if err != nil {
			return err
		}
		secret, minted, err := fields.signingSecret(cmd.Context(), c)
		if err != nil {
			return err
		}
		endpoint.Secrets = []record.Secret{{Value: secret}}
		endpoint.UpdatedBy = caller()
		view, err := c.createWebhook(cmd, endpoint)
		if err != nil {
			return err
		}
		if minted {
			view.Secret = secret
		}
		return c.printWebhook(view, *out)
	}
	return cmd
}

func (c *cli) createWebhook(cmd *cobra.Command, endpoint record.Endpoint) (webhookView, error) {
	own, origins, err := c.load(cmd)
	if err != nil {
		return webhookView{}, err
	}
	// All that can be wrong with the request is told before a broker is asked for anything.
	policy, err := own.policy()
	if err != nil {
		return webhookView{}, err
	}
	if err := deliverable(endpoint, policy); err != nil {
		return webhookView{}, usagef("the webhook can't be created like this: %w", err)
	}
	keys, err := secrets.Load(own.Secrets)
	if err != nil {
		return webhookView{}, usageError{fmt.Errorf("a webhook can't be written without a keyset: %w", err)}
	}
	s, err := c.openWith(cmd.Context(), own, origins)
	if err != nil {
		return webhookView{}, err
	}
	defer s.client.Close()
	if err := s.verify(cmd.Context()); err != nil {
		return webhookView{}, err
	}
	ctl := s.control(keys)
	if err := ctl.CheckKeyset(cmd.Context(), endpoint.ID); err != nil {
		return webhookView{}, err
	}
	_, err = ctl.WriteEndpoint(cmd.Context(), endpoint, control.Absent)
	if errors.Is(err, control.ErrConflict) {
		return webhookView{}, fmt.Errorf("the webhook %s exists already: choose another --id; `reenvio webhooks get %[1]s` shows it", endpoint.ID)
	}
	if err != nil {
		return webhookView{}, err
	}
	c.warnOfEgress(own, endpoint)
	return s.getWebhook(cmd.Context(), endpoint.ID, false)
}

// deliverable says why no dispatcher could send anything to an endpoint: it would be paused at once, as config.
func deliverable(e record.Endpoint, policy record.Policy) error {
	if err := e.Validate(policy); err != nil {
		return err
	}
	_, err := delivery.Prepare(e)
	return err
}

// warnOfEgress tells of a URL to which every attempt would fail. The webhook is written all the same: dispatchers may be configured otherwise.
func (c *cli) warnOfEgress(s settings, e record.Endpoint) {
	if why := s.Egress.Forbids(e.URL); why != nil {
		record.EndpointDefaults(&e)
		fmt.Fprintf(c.stderr, "Requests to %s would fail with the settings here: %v. If the dispatchers' egress.* say the same, each attempt fails as url_blocked; an entry in their egress.allow lets it through.\n",
			e.URLHost, why)
	}
}
