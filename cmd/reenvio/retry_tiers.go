package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/overview"
)

func newRetryTiers(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry-tiers",
		Short: "Show the delay topics: how much waits, what is due next, what is overdue",
		Long: `Show the delay topics: how many events wait in each for their next attempt, when the next is due, and what is overdue.

Overdue are those that were due more than a second ago and are not done: they are in flight to a slow endpoint, or held, or their number
has no owner. ` + "`reenvio status`" + ` says which. A figure with "<=" is an upper bound: of a long topic the rest is counted from offsets, and markers
of transactions have offsets too. A tier that is no longer in retry.tiers is listed while its topic exists: it is drained.`,
		Example: `  reenvio retry-tiers
  reenvio retry-tiers -o json | jq '[.[].overdue] | add'`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		progress := c.progress()
		tiers, err := overview.Tiers(cmd.Context(), s.lookAt(func(done, all int) { progress.show("Looking at the delay topics: %d of %d numbers.", done, all) }))
		progress.end()
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, tiers)
		}
		return printTable(c.stdout, tierHeadings, tierRows(tiers))
	}
	return cmd
}

var tierHeadings = []string{"TIER", "WAITING", "NEXT DUE", "OVERDUE", "OVERDUE SINCE", "WEBHOOK", "OLDEST"}

func tierRows(tiers []overview.Tier) [][]string {
	var rows [][]string
	for _, t := range tiers {
		name := t.Tier
		if !t.Configured {
			name += " (drained)"
		}
		rows = append(rows, []string{
			name, boundText(t.Waiting, t.WaitingIsBound), timeText(t.NextDueAt), strconv.FormatInt(t.Overdue, 10), sinceText(t.OverdueSince), t.OverdueWebhook, sinceText(t.OldestAt),
		})
	}
	return rows
}
