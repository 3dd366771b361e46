package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

func newWebhooksUpdate(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update WEBHOOK",
		Short: "Change the configuration of a webhook",
		Long: `Change the configuration of a webhook. Only the fields that are given change. A dispatcher obeys within a second, also for events that wait.

--header sets the header of that name and leaves the others; 'Name:' without a value takes it away. Lists (--event-types, --schedule) are
replaced as a whole. --unset takes fields back to their defaults, which are those shown below, before the others are set:
--unset header --header 'X: y' leaves one header. The fields are named as their flags; all but url and secret can be unset.

--secret replaces all signing secrets at once. Receivers that are to change over in their own time need
` + "`reenvio webhooks rotate-secret`" + ` instead.

If somebody else changes the webhook at the same moment, this change is made to their version: neither is lost.`,
		Example: `  reenvio webhooks update crm-orders --url https://crm.example.com/v2/orders --timeout 10s
  reenvio webhooks update crm-orders --header 'Authorization: Bearer abc' --header 'X-Old:'
  reenvio webhooks update crm-orders --unset timeout,schedule
  reenvio webhooks update crm-orders --enabled=false      # pauses it, until --enabled=true`,
		Args: oneArg("a webhook id"),
	}
	fields := newEndpointFlags(cmd.Flags())
	cmd.Flags().Lookup("url").Usage = "where events are sent, https://host/path"
	cmd.Flags().Lookup("secret").Usage = "the only signing secret from now on: whsec_..., @FILE, or - for standard input"
	unset := cmd.Flags().StringSlice("unset", nil, "fields to take back to their defaults, such as timeout,header")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change, err := fields.update(cmd.Context(), c, *unset)
		if err != nil {
			return err
		}
		u, err := c.changeWebhook(cmd, args[0], change)
		if err != nil {
			return err
		}
		return c.printUpdate(u, *out)
	}
	return cmd
}

// update is what the flags of an update do to a webhook that is there.
func (f *endpointFlags) update(ctx context.Context, c *cli, unset []string) (func(*record.Endpoint) error, error) {
	given := f.flags.Changed("secret") || len(f.headers) > 0 || len(unset) > 0
	for _, field := range endpointFields {
		given = given || f.flags.Changed(field.flag)
	}
	if !given {
		return nil, usagef("nothing is to be changed: give at least one field, such as --url or --timeout, or --unset")
	}
	reset, err := unsetFields(unset)
	if err != nil {
		return nil, err
	}
	set, err := f.change(ctx, c)
	if err != nil {
		return nil, err
	}
	secret := ""
	if f.flags.Changed("secret") {
		if f.secret == "" {
			return nil, usagef("--secret is empty: `reenvio webhooks rotate-secret` makes a new one")
		}
		if secret, _, err = f.signingSecret(ctx, c); err != nil {
			return nil, err
		}
	}
	return func(e *record.Endpoint) error {
		reset(e)
		set(e)
		if secret != "" {
			e.Secrets = []record.Secret{{Value: secret}}
		}
		return nil
	}, nil
}

// changed is a webhook's configuration before and after a change, in clear, and how the webhook is now, for people to see.
type changed struct {
	before, after record.Endpoint
	view          webhookView
}

// changeWebhook makes a change to the webhook's newest configuration, and checks what comes out.
func (c *cli) changeWebhook(cmd *cobra.Command, id string, change func(*record.Endpoint) error) (changed, error) {
	if err := record.ValidWebhookID(id); err != nil {
		return changed{}, usageError{err}
	}
	own, origins, err := c.load(cmd)
	if err != nil {
		return changed{}, err
	}
	policy, err := own.policy()
	if err != nil {
		return changed{}, err
	}
	keys, err := secrets.Load(own.Secrets)
	if errors.Is(err, secrets.ErrNone) { // a new one would not open what is there
		return changed{}, usagef("the webhook %s can't be written without a keyset: %w: use the keyset that the dispatchers have", id, secrets.ErrNone)
	}
	if err != nil {
		return changed{}, usageError{fmt.Errorf("a webhook can't be written without a keyset: %w", err)}
	}
	s, err := c.openWith(cmd.Context(), own, origins)
	if err != nil {
		return changed{}, err
	}
	defer s.client.Close()
	if err := s.verify(cmd.Context()); err != nil {
		return changed{}, err
	}
	ctl := s.control(keys)
	before, after, err := ctl.ChangeEndpoint(cmd.Context(), id, func(e *record.Endpoint) error {
		was := string(e.Marshal())
		if err := change(e); err != nil {
			return err
		}
		if string(e.Marshal()) == was {
			return nil
		}
		e.UpdatedBy = caller()
		if err := deliverable(*e, policy); err != nil {
			return usagef("the webhook %s can't be changed to this: %w", id, err)
		}
		return ctl.CheckKeyset(cmd.Context(), id)
	})
	if err != nil {
		return changed{}, whereToLook(err)
	}
	if after.URL != before.URL {
		c.warnOfEgress(own, after)
	}
	view, err := s.getWebhook(cmd.Context(), id, false)
	return changed{before, after, view}, err
}

// updateView is what a program reads of an update.
type updateView struct {
	webhookView
	Changed []fieldChange `json:"changed"`
}

func (c *cli) printUpdate(u changed, out format) error {
	changes, err := differences(u.before, u.after)
	if err != nil {
		return err
	}
	if out == formatJSON {
		return printJSON(c.stdout, updateView{u.view.inForce(), changes})
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintf(c.stdout, "Nothing has changed: %s is like this already.\n", u.after.ID)
		return err
	}
	var rows [][]string
	for _, change := range changes {
		rows = append(rows, change.row)
	}
	if err := printTable(c.stdout, []string{"CHANGED", "FROM", "TO"}, rows); err != nil {
		return err
	}
	if slices.ContainsFunc(u.view.State.PauseReasons, liftedByResume) {
		fmt.Fprintf(c.stderr, "%s is still %s: `reenvio webhooks resume %[1]s` sends again.\n", u.after.ID, u.view.statusText())
	}
	return nil
}
