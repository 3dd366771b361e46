package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

func newHold(c *cli) *cobra.Command {
	return newHoldAct(c, record.ActionHold, &cobra.Command{
		Use:   "hold --all | --tenant T | --webhook W | --host H",
		Short: "Stop requests by hand: all, or those of a tenant, webhook or host",
		Long: `Stop requests by hand. None starts from then on, within a second and on every dispatcher; those under way end. Events are kept: those of
held webhooks are parked, in order; while all is held they wait where they lie. A hold is no pause: webhooks keep their status, and go on
when ` + "`reenvio release`" + ` ends the hold, what was parked first. Each hold is ended by a release of the same kind and value.

A host is one as ` + "`reenvio webhooks list`" + ` shows it; without a port it stands for all its ports. ` + "`reenvio status`" + ` shows what is held.`,
		Example: `  reenvio hold --host hooks.example.com --reason 'their data centre is down'
  reenvio hold --tenant acme
  reenvio hold --all`,
	})
}

func newRelease(c *cli) *cobra.Command {
	return newHoldAct(c, record.ActionRelease, &cobra.Command{
		Use:   "release --all | --tenant T | --webhook W | --host H",
		Short: "End a hold by hand",
		Long: `End the hold that was made with the same flag and value. What was parked is sent first, in order, then what is new; a webhook that is
paused, or held by another hold too, stays so. ` + "`reenvio status`" + ` shows what is held.`,
		Example: `  reenvio release --host hooks.example.com
  reenvio release --all`,
	})
}

// holdFlags are the scopes of a hold; exactly one is given.
type holdFlags struct {
	cmd    *cobra.Command
	all    *bool
	values map[record.HoldScope]*string
}

func newHoldFlags(cmd *cobra.Command) holdFlags {
	f := holdFlags{cmd: cmd, values: map[record.HoldScope]*string{}}
	f.all = cmd.Flags().Bool(string(record.HoldAll), false, "every webhook")
	for scope, doc := range map[record.HoldScope]string{
		record.HoldTenant: "the webhooks of this tenant", record.HoldWebhook: "the webhook with this id", record.HoldHost: "the webhooks at this host, such as hooks.example.com or hooks.example.com:8443",
	} {
		f.values[scope] = cmd.Flags().String(string(scope), "", doc)
	}
	return f
}

func (f holdFlags) hold() (record.Hold, error) {
	var given []record.Hold
	if *f.all {
		given = append(given, record.Hold{Scope: record.HoldAll})
	}
	for scope, value := range f.values {
		if f.cmd.Flags().Changed(string(scope)) {
			given = append(given, record.Hold{Scope: scope, Value: *value})
		}
	}
	if len(given) != 1 {
		return record.Hold{}, usagef("say what is meant, with exactly one of --all, --tenant, --webhook and --host")
	}
	h := given[0]
	if h.Scope == record.HoldHost {
		h.Value = strings.ToLower(h.Value)
		if host := hostOnly(h.Value); host != h.Value {
			return h, usagef("--host is %q: give the host only: %s", h.Value, cmp.Or(host, "hooks.example.com"))
		}
	}
	if err := record.ValidHold(h.Scope, h.Value); err != nil {
		return h, usageError{fmt.Errorf("--%s: %w", h.Scope, err)}
	}
	return h, nil
}

// hostOnly is the host, and the port, in what may be a whole URL.
func hostOnly(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		text = text[:end]
	}
	return text[strings.LastIndex(text, "@")+1:]
}

func newHoldAct(c *cli, action record.Action, cmd *cobra.Command) *cobra.Command {
	cmd.Args = noArgs
	flags := newHoldFlags(cmd)
	wait := waitFlag(cmd)
	reason := reasonFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hold, err := flags.hold()
		if err != nil {
			return err
		}
		if err := validWait(*wait); err != nil {
			return err
		}
		s, err := c.openForCommands(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		ctx := cmd.Context()
		ctl := s.control(nil)
		command := record.Command{Action: action, Scope: hold.Scope, Value: hold.Value, By: caller(), Reason: *reason}
		if hold.Scope == record.HoldWebhook {
			if _, err := findWebhook(ctx, ctl, hold.Value); err != nil {
				return err
			}
			command.Webhook = hold.Value
			result, err := act(ctx, ctl, *wait, command)
			if err != nil {
				return err
			}
			return c.printResult(actResult{Webhook: hold.Value, Action: action, Result: result}, *out)
		}
		nothing, err := c.warnOfNothing(ctx, ctl, action, hold)
		if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, *wait)
		defer cancel()
		numbers, err := ctl.DoNumbers(waiting, command)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if printed := c.printNumbers(newNumbersResult(action, hold, *wait, numbers), nothing && action == record.ActionRelease, *wait, *out); err == nil {
			err = printed
		}
		return err
	}
	return cmd
}

// warnOfNothing says that a hold concerns no webhook now, or that there is no such hold to release, as when a name is misspelt.
func (c *cli) warnOfNothing(ctx context.Context, ctl *control.Control, action record.Action, hold record.Hold) (nothing bool, err error) {
	if action == record.ActionRelease {
		numbers, err := ctl.ListHolds(ctx)
		nothing = err == nil && !slices.ContainsFunc(slices.Concat(numbers...), func(h record.Hold) bool { return h.Scope == hold.Scope && h.Value == hold.Value })
		if nothing {
			fmt.Fprintf(c.stderr, "No hold of %s is there: `reenvio status` shows what is held.\n", clean(hold.String()))
		}
		return nothing, err
	}
	all, err := ctl.ListEndpoints(ctx)
	nothing = err == nil && hold.Scope != record.HoldAll && !slices.ContainsFunc(all, func(e control.Stored) bool { return hold.Concerns(e.Tenant, e.URLHost) })
	if nothing {
		fmt.Fprintf(c.stderr, "No webhook has the %s %s now: `reenvio webhooks list` shows what there is. If it is misspelt: `reenvio release %s`.\n", hold.Scope, clean(hold.Value), clean(releaseFlag(hold)))
	}
	return nothing, err
}
