package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/overview"

	"github.com/spf13/cobra"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
)

func newDLQRedrive(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redrive (--id E | --webhook W | --reason R | --since T | --until T)...",
		Short: "Send dead events again",
		Long: `Send dead events again: each as a new record of the events topic, with the same id, key, body and headers, and attempts from 1. The dead
letter stays where it is.

At least one filter is needed. ` + filterHelp + `
Of each event the latest letter counts, and only letters that lie in the topic when the command begins.

Not sent are events that can't be delivered (no legal key, webhook unknown or deleted, ...), that were delivered after they died, that were
redriven and are still on their way, or that were redriven ` + fmt.Sprint(dlqconsumer.MaxRedrives) + ` times already; --dry-run counts them, and says why. --force sends those that were delivered,
were redriven too often, or have lost headers. What came to pass is looked up in the attempts topic (which says nothing of deliveries when
attempts.successes is not all) and in the events topic, as far back as they are kept.
Events of a paused webhook are sent too, and wait until it is resumed.

A run has a name, which is printed. One that was interrupted goes on with the same filters and --run NAME: what it has sent is not sent
twice. Exit status 0: all was sent that could be; 1: some failed, or it was interrupted.`,
		Example: `  reenvio dlq redrive --webhook crm-orders --since 24h --dry-run
  reenvio dlq redrive --webhook crm-orders --reason attempts_exhausted
  reenvio dlq redrive --id evt-4711 --id evt-4712 --yes -o json`,
		Args: noArgs,
	}
	filters := filterFlags(cmd)
	var options dlqconsumer.RedriveOptions
	cmd.Flags().StringVar(&options.Run, "run", "", "go on with the run of this name (default: a new one)")
	cmd.Flags().BoolVar(&options.Force, "force", false, "send also what was delivered since, was redriven too often, or has lost headers")
	dry := cmd.Flags().Bool("dry-run", false, "only count what would be sent, and what not and why")
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if options.Filter, err = filters.filter(); err != nil {
			return err
		}
		if err := options.Validate(); errors.Is(err, dlqconsumer.ErrNoFilter) {
			return usagef("%w: --id, --webhook, --reason, --since or --until, or several of them", err)
		} else if err != nil {
			return usageError{err}
		}
		if !*dry && !*yes && !c.terminal { // before a long look, rather than after it
			return c.confirm(cmd.Context(), false, "Send dead events again?")
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		letters := dlqconsumer.New(s.client, s.topo)
		p := c.progress()
		plan, err := letters.Plan(cmd.Context(), options, lettersProgress(p))
		p.end()
		if err != nil {
			return err
		}
		c.tellOdd(options.Run, plan)
		if *dry || plan.Ready == 0 {
			return c.printRedrive(redriveOf(plan, dlqconsumer.Sent{}, *dry), *out)
		}
		if !*yes {
			if err := printPlan(c.stderr, plan); err != nil {
				return err
			}
			if err := c.confirm(cmd.Context(), false, fmt.Sprintf("Send %s again?", overview.Plural(plan.Ready, "event"))); err != nil {
				return err
			}
		}
		sent, err := c.redrive(cmd.Context(), s, letters, plan)
		if err != nil {
			fmt.Fprintf(c.stderr, "%d of %d events were sent. To go on, give the same command again with --run %s\n", sent.Sent, plan.Ready, plan.Run)
			return err
		}
		if err := c.printRedrive(redriveOf(plan, sent, false), *out); err != nil {
			return err
		}
		if len(sent.Failed) > 0 {
			return errNotDone
		}
		return nil
	}
	return cmd
}

// tellOdd tells what was asked for by name, and is not there: a typing mistake, most likely.
func (c *cli) tellOdd(run string, plan *dlqconsumer.Plan) {
	if len(plan.Unmatched) > 0 && plan.Matched > 0 {
		fmt.Fprintf(c.stderr, "No dead letter matches --id %s.\n", clean(strings.Join(plan.Unmatched, ", ")))
	}
	if run != "" && plan.Matched > 0 && plan.SentBefore == 0 {
		fmt.Fprintf(c.stderr, "No run %s has sent any of these: this begins a new one.\n", run)
	}
}

// redrive sends what the plan says, and shows how far it is.
func (c *cli) redrive(ctx context.Context, s *session, letters *dlqconsumer.Reader, plan *dlqconsumer.Plan) (dlqconsumer.Sent, error) {
	writer, err := dlqconsumer.NewWriter(s.opts)
	if err != nil {
		return dlqconsumer.Sent{}, err
	}
	defer writer.Close()
	fmt.Fprintf(c.stderr, "Run %s, begun at %s.\n", plan.Run, time.Now().Format(time.DateTime))
	p := c.progress()
	defer p.end()
	return letters.Redrive(ctx, plan, writer, lettersProgress(p))
}
