package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/overview"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
)

// discardResult is what a program reads: how many of the parked events match, and, unless that was all the question, what came of it.
type discardResult struct {
	Webhook  string      `json:"webhook"`
	Before   record.Time `json:"before"`
	Parked   int64       `json:"parked"`
	Matching int64       `json:"matching"`
	Oldest   record.Time `json:"oldest,omitzero"` // of those that match, when they were produced
	Newest   record.Time `json:"newest,omitzero"`
	DryRun   bool        `json:"dry_run,omitempty"`
	*record.Result
}

func newWebhooksDiscardParked(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "discard-parked WEBHOOK --before TIME",
		Short: "Give up parked events that are too old to be of use",
		Long: `Give up the parked events of a webhook that were produced before a time. They die as discarded: each becomes a dead letter, from where
` + "`reenvio dlq redrive`" + ` can send it again. The others stay parked.

TIME is RFC 3339, such as 2026-01-02T15:04:05Z, or a duration such as 2h or 7d, which means that long ago.`,
		Example: `  reenvio webhooks discard-parked crm-orders --before 24h --dry-run
  reenvio webhooks discard-parked crm-orders --before 2026-01-02T15:04:05Z --yes`,
		Args: oneArg("a webhook id"),
	}
	before := cmd.Flags().String("before", "", "events produced before this are given up: RFC 3339, or a duration such as 2h or 7d for that long ago (required)")
	dryRun := cmd.Flags().Bool("dry-run", false, "count them, and change nothing")
	wait := durationFlag(cmd.Flags(), "wait", 10*time.Second, "how long to wait while nothing moves")
	reason := reasonFlag(cmd)
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		limit, err := pastTime("--before", *before, time.Now())
		if err != nil {
			return err
		}
		if err := validWait(*wait); err != nil {
			return err
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		ctx := cmd.Context()
		ctl := s.control(nil)
		if _, err := findWebhook(ctx, ctl, args[0]); err != nil {
			return err
		}
		found, err := c.countParked(ctx, ctl, args[0], limit)
		if err != nil {
			return err
		}
		found.DryRun = *dryRun
		if *dryRun || found.Matching == 0 {
			return c.printDiscard(found, *out)
		}
		question := fmt.Sprintf("Discard %s?", found.text())
		if err := c.confirm(ctx, *yes, question); err != nil {
			return err
		}
		command := record.Command{Webhook: args[0], Action: record.ActionDiscardParked, Before: limit, By: caller(), Reason: *reason}
		result, err := c.discard(ctx, ctl, *wait, command)
		if err != nil {
			return err
		}
		found.Result = &result
		return c.printDiscard(found, *out)
	}
	return cmd
}

// pastTime reads a time, or a duration that means as long ago.
func pastTime(flag, text string, now time.Time) (record.Time, error) {
	if text == "" {
		return record.Time{}, usagef("%s is missing: give a time of RFC 3339, such as 2026-01-02T15:04:05Z, or a duration such as 2h or 7d for that long ago", flag)
	}
	if ago, err := parseDuration(text); err == nil {
		if ago < 0 {
			return record.Time{}, usagef("%s is %s: a duration means that long ago, and can't be negative", flag, text)
		}
		return record.At(now.Add(-ago)), nil
	}
	at, err := record.ParseTime(text)
	if err != nil {
		return record.Time{}, usagef("%s is %q: want a time of RFC 3339, such as 2026-01-02T15:04:05Z, or a duration such as 2h or 7d for that long ago", flag, text)
	}
	return at, nil
}

// countParked asks Kafka alone, not the owner.
func (c *cli) countParked(ctx context.Context, ctl *control.Control, id string, before record.Time) (discardResult, error) {
	found := discardResult{Webhook: id, Before: before}
	state, _, err := ctl.GetState(ctx, id)
	if err != nil || state.Parked == nil {
		return found, err
	}
	found.Parked = state.Parked.Count
	line := c.progress()
	defer line.end()
	err = ctl.EachParked(ctx, id, *state.Parked, func(d *record.Delivery) {
		if !d.ProducedAt.Before(before.Time) {
			return
		}
		found.Matching++
		if found.Oldest.IsZero() || d.ProducedAt.Before(found.Oldest.Time) {
			found.Oldest = d.ProducedAt
		}
		if d.ProducedAt.After(found.Newest.Time) {
			found.Newest = d.ProducedAt
		}
	}, func(done, all int64) {
		line.show("%s: %s to discard so far, %d %% looked through", id, overview.Plural(found.Matching, "parked event"), 100*done/all)
	})
	return found, err
}

// discard has it done, and shows how the number of parked events falls. It may take longer than anybody would set --wait to, so that ends
// the waiting only while nothing moves.
func (c *cli) discard(ctx context.Context, ctl *control.Control, wait time.Duration, command record.Command) (record.Result, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		result record.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := ctl.Do(waiting, command)
		answers <- answer{result, err}
	}()
	tail, line := ctl.TailState(command.Webhook), c.progress()
	defer line.end()
	left, moved := int64(-1), time.Now()
	for {
		select {
		case a := <-answers:
			var pending *control.PendingError
			if ctx.Err() == nil && errors.As(a.err, &pending) {
				return record.Result{ID: pending.ID, Result: resultPending, Detail: fmt.Sprintf("%s, and nothing has moved", unanswered(pending.Number, wait))}, nil
			}
			return a.result, a.err
		case <-time.After(followPause):
		}
		// What can't be read is no reason to end: the answer will say.
		if state, _, err := tail.Read(waiting); err == nil && parkedCount(state) != left {
			left, moved = parkedCount(state), time.Now()
		}
		line.show("%s: parked events left: %d", command.Webhook, left)
		if time.Since(moved) > wait {
			cancel()
		}
	}
}

func (r discardResult) text() string {
	span := ""
	if r.Matching > 0 {
		span = fmt.Sprintf(" (from %s to %s)", timeText(r.Oldest), timeText(r.Newest))
	}
	return fmt.Sprintf("%d of %d parked events of %s, produced before %s%s", r.Matching, r.Parked, r.Webhook, timeText(r.Before), span)
}

func (c *cli) printDiscard(r discardResult, out format) error {
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	}
	switch {
	case out == formatJSON:
	case r.Result != nil:
		return c.printResult(actResult{Webhook: r.Webhook, Action: record.ActionDiscardParked, Result: *r.Result}, out)
	case r.Matching == 0:
		fmt.Fprintf(c.stdout, "Nothing to discard: %s.\n", r.text())
	default:
		fmt.Fprintf(c.stdout, "Would discard %s.\n", r.text())
	}
	if r.Result == nil {
		return nil
	}
	return c.ended(*r.Result)
}
