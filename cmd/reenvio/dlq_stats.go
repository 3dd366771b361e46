package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
)

// topWebhooks is how many webhooks `dlq stats` names without --all.
const topWebhooks = 20

func newDLQStats(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count dead letters by reason, webhook and time",
		Long: `Count dead letters by reason, by webhook and by time of death: by hour up to two days, by day (of this machine's zone) beyond.

` + filterHelp + `

-o json prints one object: count, first_at, last_at; lists of reasons, webhooks (the ` + strconv.Itoa(topWebhooks) + ` that have most, without --all; other_webhooks counts
the letters of the rest) and times, each the beginning of an hour or day ("per").`,
		Example: `  reenvio dlq stats
  reenvio dlq stats --since 30d --all
  reenvio dlq stats --webhook crm-orders --since 7d -o json | jq '.reasons'`,
		Args: noArgs,
	}
	filters := filterFlags(cmd)
	since := cmd.Flags().Lookup("since")
	_ = since.Value.Set("24h") // it is one
	since.DefValue = "24h"
	all := cmd.Flags().Bool("all", false, "name every webhook")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := filters.filter()
		if err != nil {
			return err
		}
		s, err := c.openForDeadLetters(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		p := c.progress()
		stats, err := dlqconsumer.New(s.client, s.topo).Stats(cmd.Context(), filter, time.Local, lettersProgress(p))
		p.end()
		if err != nil {
			return err
		}
		if !*all {
			stats.Top(topWebhooks)
		}
		if *out == formatJSON {
			return printJSON(c.stdout, stats)
		}
		return c.printStats(stats)
	}
	return cmd
}

func (c *cli) printStats(s dlqconsumer.Stats) error {
	if s.Count == 0 {
		fmt.Fprintln(c.stderr, "No dead letter matches.")
		return nil
	}
	err := printFacts(c.stdout, [][2]string{
		{"Dead letters", strconv.FormatInt(s.Count, 10)},
		{"First death", timeText(s.FirstAt)},
		{"Last death", timeText(s.LastAt)},
	})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, r := range s.Reasons {
		rows = append(rows, tallyRow(r.Tally, cmp.Or(string(r.Reason), "(not written by Reenvio)")))
	}
	if err := c.printSection([]string{"REASON", "LETTERS", "FIRST", "LAST"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, w := range s.Webhooks {
		rows = append(rows, tallyRow(w.Tally, cmp.Or(w.Webhook, "(no legal webhook id)")))
	}
	if s.Others > 0 {
		rows = append(rows, []string{"(others)", strconv.FormatInt(s.Others, 10), "", ""})
	}
	if err := c.printSection([]string{"WEBHOOK", "LETTERS", "FIRST", "LAST"}, rows); err != nil {
		return err
	}
	rows = nil
	heading, layout := "HOUR", "2006-01-02 15:04"
	if s.Per == dlqconsumer.PerDay {
		heading, layout = "DAY", time.DateOnly
	}
	for _, t := range s.Times {
		rows = append(rows, []string{t.At.Local().Format(layout), strconv.FormatInt(t.Count, 10)})
	}
	return c.printSection([]string{heading, "LETTERS"}, rows)
}

// printSection is a table with an empty line before it.
func (c *cli) printSection(headings []string, rows [][]string) error {
	fmt.Fprintln(c.stdout)
	return printTable(c.stdout, headings, rows)
}

func tallyRow(t dlqconsumer.Tally, name string) []string {
	return []string{name, strconv.FormatInt(t.Count, 10), timeText(t.FirstAt), timeText(t.LastAt)}
}
