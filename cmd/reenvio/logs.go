package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
)

func newLogs(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs WEBHOOK",
		Short: "Show the delivery attempts of a webhook",
		Long: `Show the newest delivery attempts of a webhook, the newest last.

It reads the attempts topic. Deliveries are missing there when attempts.successes is not all; failed attempts never are.
-o json prints the records of that topic as they are (schemas/attempt.schema.json): an array, or with --follow one in each line.`,
		Example: `  reenvio logs crm-orders
  reenvio logs crm-orders --failed --since 24h --limit 500
  reenvio logs crm-orders --follow -o json | jq -r 'select(.outcome == "dead") | .event_id'`,
		Args: oneArg("a webhook id"),
	}
	var q story.LogQuery
	var from since
	cmd.Flags().BoolVar(&q.Failed, "failed", false, "only attempts that failed, and events that died")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "how many at most, the newest")
	cmd.Flags().Var(&from, "since", "only those since then: how long ago (24h, 7d), or an RFC 3339 time (default: all that the topic keeps)")
	follow := cmd.Flags().Bool("follow", false, "go on with what comes, until Ctrl-C")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.Limit < 1 {
			return usagef("--limit is %d: it must be at least 1", q.Limit)
		}
		q.Webhook, q.Since = args[0], from.time
		if err := record.ValidWebhookID(q.Webhook); err != nil {
			return usageError{err}
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		var entries []story.Entry
		progress := c.progress()
		reader := s.story(reading(progress))
		next, err := reader.Log(cmd.Context(), q, func(e story.Entry) error { entries = append(entries, e); return nil })
		progress.end()
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			// Of a deleted webhook, and of one that never was, there can be attempts all the same.
			if _, err := findWebhook(cmd.Context(), s.control(nil), q.Webhook); err != nil {
				return err
			}
			fmt.Fprintln(c.stderr, noAttempts(q))
		}
		if !*follow {
			return c.printLog(entries, *out)
		}
		show, err := c.followLog(entries, *out)
		if err != nil {
			return err
		}
		return reader.Follow(cmd.Context(), q, next, show)
	}
	return cmd
}

func noAttempts(q story.LogQuery) string {
	what := "attempt"
	if q.Failed {
		what = "failed attempt"
	}
	when := ""
	if !q.Since.IsZero() {
		when = " since " + timeText(record.At(q.Since))
	}
	return fmt.Sprintf("There is no %s of %s%s.", what, q.Webhook, when)
}

func (c *cli) printLog(entries []story.Entry, out format) error {
	if out == formatJSON {
		array := newJSONArray(c.stdout)
		for _, e := range entries {
			if err := array.add(json.RawMessage(e.Raw)); err != nil {
				return err
			}
		}
		return array.end()
	}
	if len(entries) == 0 {
		return nil
	}
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = logRow(e)
	}
	return printTable(c.stdout, logHeadings, rows)
}

// followLog prints what there is, and returns what prints one more.
func (c *cli) followLog(entries []story.Entry, out format) (func(story.Entry) error, error) {
	if out == formatJSON {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetEscapeHTML(false)
		show := func(e story.Entry) error { return encoder.Encode(json.RawMessage(e.Raw)) }
		for _, e := range entries {
			if err := show(e); err != nil {
				return nil, err
			}
		}
		return show, nil
	}
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = logRow(e)
	}
	table, err := newGrowingTable(c.stdout, logHeadings, rows)
	if err != nil {
		return nil, err
	}
	return func(e story.Entry) error { return table.add(logRow(e)) }, nil
}

var logHeadings = []string{"TIME", "EVENT", "ATTEMPT", "OUTCOME", "ANSWER", "TOOK", "NEXT"}

func logRow(e story.Entry) []string {
	attempt, took := "-", "-"
	if e.Attempt.Attempt > 0 {
		attempt, took = fmt.Sprint(e.Attempt.Attempt), tookText(e.DurationMS)
	}
	return []string{stamp(record.At(e.At)), e.EventID, attempt, string(e.Outcome), shortened(answerText(e.Attempt)), took, nextText(e.Next, e.NextAttemptAt)}
}

func nextText(next record.Next, at record.Time) string {
	switch next {
	case record.NextRetry:
		return "retry " + clock(at.Time)
	case record.NextParked:
		return string(next)
	case record.NextNone:
	}
	return ""
}

// stamp is timeText to the millisecond: attempts come one after the other within seconds.
func stamp(t record.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// shortened is the beginning of a text that would break its table; -o json has all of it.
func shortened(text string) string { return cut(text, 80) }

// cut is the beginning of a text that is longer than most.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
