package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/internal/record"
)

func newDLQ(c *cli) *cobra.Command {
	return group("dlq", "Look at dead letters, and send their events again", newDLQList(c), newDLQShow(c), newDLQStats(c), newDLQRedrive(c))
}

func newDLQList(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the newest dead letters",
		Long: `List the newest dead letters.

` + filterHelp,
		Example: `  reenvio dlq list
  reenvio dlq list --webhook crm-orders --reason attempts_exhausted --limit 100
  reenvio dlq list --since 24h -o json | jq -r '.[].event_id'`,
		Args: noArgs,
	}
	filters := filterFlags(cmd)
	limit := cmd.Flags().Int("limit", 20, "how many at most, newest first")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 {
			return usagef("--limit is %d: it must be at least 1", *limit)
		}
		filter, err := filters.filter()
		if err != nil {
			return err
		}
		s, err := c.openForDeadLetters(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		letters := dlqconsumer.New(s.client, s.topo)
		if *out == formatJSON {
			array := newJSONArray(c.stdout)
			if err := letters.List(cmd.Context(), filter, *limit, func(l record.DeadLetter) error { return array.add(l) }); err != nil {
				return err
			}
			return array.end()
		}
		var rows [][]string
		err = letters.List(cmd.Context(), filter, *limit, func(l record.DeadLetter) error {
			rows = append(rows, letterRow(l))
			return nil
		})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			fmt.Fprintln(c.stderr, "No dead letter matches.")
			return nil
		}
		if err := printTable(c.stdout, []string{"DIED AT", "WEBHOOK", "EVENT", "TYPE", "REASON", "ATTEMPTS", "LAST STATUS", "PLACE"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(c.stderr, "`reenvio dlq show PLACE` shows one.")
		return nil
	}
	return cmd
}

func letterRow(l record.DeadLetter) []string {
	webhook := l.Webhook
	if webhook == "" {
		webhook = shortened(string(l.Key)) // no legal id, so it can be as long as a record
	}
	status := ""
	if l.LastStatus != 0 {
		status = strconv.Itoa(l.LastStatus)
	}
	return []string{timeText(l.DiedAt), webhook, l.ID, shortened(l.Type), string(l.Reason), strconv.Itoa(l.Attempts), status, fmt.Sprintf("%d/%d", l.Position.Partition, l.Position.Offset)}
}

// timeText is a time for people, in their own zone; empty for none.
func timeText(t record.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
