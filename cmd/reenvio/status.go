package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/topology"
)

func newStatus(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "The one screen: what needs a person, who owns what, what waits and why",
		Long: `Show how everything is doing, from Kafka alone: it works when no dispatcher does.

What needs a person comes first, each with the next step. Then one line of figures, holds by hand, the dispatchers and their partition
numbers, the numbers in which something waits, the delay topics, paused webhooks and what to do about them, and what died in the last hour.

WHY of a number says why the event at its lowest incomplete offset is not done yet:

  in_flight         its request runs, or it is the next of its webhook, and waits for a slot or for its host at most (reenvio_slots,
                    reenvio_host_waiting)
  strict_head       one before it failed and waits for its next attempt, and the webhook's ordering lets nothing overtake that
  hold              held by hand, or its endpoint asked to wait (Retry-After)
  config            the configuration of its webhook can't be used
  paused            its webhook is paused, and it is about to be parked
  no_owner          no dispatcher has the number
  rebalancing       the numbers are being shared out anew
  open_transaction  it lies behind a producer's transaction that has not ended

The exit status is 0 when the answer is complete, whatever it says; "ok" of -o json tells a program whether a person is needed.
schemas/status.schema.json describes the object.`,
		Example: `  reenvio status
  reenvio status -o json | jq -e .ok`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.open(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		progress := c.progress()
		o, err := s.overview(cmd.Context(), func(done, all int) { progress.show("Looking at the numbers: %d of %d.", done, all) })
		progress.end()
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, o)
		}
		return printOverview(c.stdout, o)
	}
	return cmd
}

// overview reads everything. A set of topics that is not as it should be is a problem among others, unless there is nothing to be read of it.
func (s *session) overview(ctx context.Context, progress func(done, all int)) (*overview.Overview, error) {
	wrong := s.verify(ctx)
	set, isSet := errors.AsType[*topology.WrongSetError](wrong)
	if wrong != nil && !isSet {
		return nil, wrong
	}
	o, err := overview.Read(ctx, s.lookAt(progress))
	switch {
	case err != nil && wrong != nil:
		return nil, wrong
	case err != nil:
		return nil, err
	case wrong != nil:
		o.Add(overview.Problem{Problem: "A dispatcher would refuse to start: " + set.Error(), NextStep: "reenvio topics plan"})
	}
	return o, nil
}

func (s *session) lookAt(progress func(done, all int)) overview.Options {
	return overview.Options{Client: s.client, Topology: s.topo, Group: s.settings.Dispatcher.Group, Progress: progress}
}

// Rows that a table of people has at most; -o json has more.
const mostRows = 20

// printOverview puts what a person who was woken needs on top.
func printOverview(w io.Writer, o *overview.Overview) error {
	switch len(o.Problems) {
	case 0:
		fmt.Fprintln(w, "Nothing needs a person at once.")
	case 1:
		fmt.Fprintln(w, "ONE THING NEEDS A PERSON")
	default:
		fmt.Fprintf(w, "%d THINGS NEED A PERSON\n", len(o.Problems))
	}
	for _, p := range o.Problems {
		fmt.Fprintf(w, "! %s\n", clean(localTimes(p.Problem)))
		if p.NextStep != "" {
			fmt.Fprintf(w, "  Next: %s\n", clean(p.NextStep))
		}
	}
	fmt.Fprintf(w, "%s.\n", clean(o.Headline))
	for _, show := range []func(io.Writer, *overview.Overview) error{printHolds, printDispatchers, printNumbers, printRetries, printPaused, printReturning, printDead} {
		if err := show(w, o); err != nil {
			return err
		}
	}
	for i, note := range o.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Note: %s.\n", clean(localTimes(note)))
	}
	return nil
}

// section is a titled table, left out when it is empty.
func section(w io.Writer, title string, headings []string, rows [][]string, all int) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n", title)
	if err := printTable(w, headings, rows); err != nil {
		return err
	}
	if all > len(rows) {
		fmt.Fprintf(w, "... and %d more; -o json lists them.\n", all-len(rows))
	}
	return nil
}

func printHolds(w io.Writer, o *overview.Overview) error {
	var rows [][]string
	for _, h := range o.Holds {
		rows = append(rows, []string{strings.TrimSpace(string(h.Scope) + " " + h.Value), sinceText(h.At), h.By, shortened(h.Reason), nonZero(h.Parked), h.NextStep})
	}
	shown := rows[:min(mostRows, len(rows))]
	return section(w, "HELD BY HAND: no request starts for these", []string{"WHAT", "SINCE", "BY", "REASON", "PARKED", "TO RELEASE"}, shown, len(rows))
}

func printDispatchers(w io.Writer, o *overview.Overview) error {
	var rows [][]string
	for _, d := range o.Dispatchers {
		rows = append(rows, []string{d.Instance, d.Host, cmp.Or(overview.Ranges(d.Numbers), "none")})
	}
	shown := rows[:min(mostRows, len(rows))]
	return section(w, "Dispatchers", []string{"INSTANCE", "HOST", "NUMBERS"}, shown, len(rows))
}

// printNumbers leaves out those in which nothing waits.
func printNumbers(w io.Writer, o *overview.Overview) error {
	waiting := slices.DeleteFunc(slices.Clone(o.Numbers), func(n overview.Number) bool {
		return n.Backlog == 0 && n.CommandsWaiting == 0
	})
	// The one that waits longest first.
	slices.SortStableFunc(waiting, func(a, b overview.Number) int {
		return cmp.Or(boolCompare(a.IncompleteReason == "", b.IncompleteReason == ""), a.IncompleteSince.Compare(b.IncompleteSince.Time))
	})
	var rows [][]string
	for _, n := range waiting[:min(mostRows, len(waiting))] {
		place, why := "", ""
		if n.IncompleteReason != "" {
			place, why = strconv.FormatInt(n.IncompleteOffset, 10), string(n.IncompleteReason)
		}
		if n.IncompleteDetail != "" {
			why += " (" + localTimes(n.IncompleteDetail) + ")"
		}
		rows = append(rows, []string{
			strconv.Itoa(int(n.Number)), cmp.Or(n.Owner, "none"), boundText(n.Backlog, n.BacklogIsBound), nonZero(n.CommandsWaiting), place, sinceText(n.IncompleteSince),
			n.IncompleteWebhook, n.IncompleteEventID, why,
		})
	}
	return section(w, "Numbers in which something waits, and the first event of each", []string{"NUMBER", "OWNER", "BACKLOG", "COMMANDS", "OFFSET", "PRODUCED", "WEBHOOK", "EVENT", "WHY"}, rows, len(waiting))
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func printRetries(w io.Writer, o *overview.Overview) error {
	var waiting []overview.Tier
	for _, t := range o.RetryTiers {
		if t.Waiting > 0 {
			waiting = append(waiting, t)
		}
	}
	return section(w, "Retries", tierHeadings, tierRows(waiting), len(waiting))
}

func printPaused(w io.Writer, o *overview.Overview) error {
	var rows [][]string
	for _, p := range o.Paused[:min(mostRows, len(o.Paused))] {
		answer := lastAnswer(record.State{LastStatus: p.LastStatus, LastError: p.LastError})
		rows = append(rows, []string{p.Webhook, reasonsText(p.PauseReasons), sinceText(p.PausedAt), answer, strconv.FormatInt(p.Parked, 10), p.NextStep})
	}
	return section(w, "Paused webhooks", []string{"WEBHOOK", "REASON", "SINCE", "LAST ANSWER", "PARKED", "WHAT TO DO"}, rows, o.WebhooksPaused)
}

func reasonsText(reasons []record.PauseReason) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = string(r)
	}
	return strings.Join(texts, ", ")
}

func printReturning(w io.Writer, o *overview.Overview) error {
	var rows [][]string
	for _, r := range o.Returning[:min(mostRows, len(o.Returning))] {
		rows = append(rows, []string{r.Webhook, strconv.FormatInt(r.Parked, 10), sinceText(r.OldestParkedAt)})
	}
	return section(w, "Active webhooks whose parked events go out first", []string{"WEBHOOK", "PARKED", "THE OLDEST SINCE"}, rows, o.WebhooksReturning)
}

func printDead(w io.Writer, o *overview.Overview) error {
	var rows [][]string
	for _, d := range o.DeadByReason {
		see := "reenvio dlq list --reason " + string(d.Reason)
		if d.Reason == "" {
			see = "reenvio dlq list"
		}
		rows = append(rows, []string{cmp.Or(string(d.Reason), "no dead letter of Reenvio"), strconv.FormatInt(d.Count, 10), see})
	}
	return section(w, "Dead in the last hour", []string{"REASON", "COUNT", "SEE THEM"}, rows, len(rows))
}

var recordTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// localTimes writes the times in a sentence as the tables next to it do.
func localTimes(text string) string {
	return recordTime.ReplaceAllStringFunc(text, func(found string) string {
		if t, err := record.ParseTime(found); err == nil {
			return timeText(t)
		}
		return found
	})
}

func boundText(n int64, bound bool) string {
	if bound {
		return fmt.Sprintf("<= %d", n)
	}
	return strconv.FormatInt(n, 10)
}
