package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
)

// skipResult is what a program reads.
type skipResult struct {
	Place   string `json:"place"`
	Webhook string `json:"webhook"`
	EventID string `json:"event_id"`
	record.Result
}

func newSkip(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skip TOPIC/PARTITION/OFFSET --to-dlq",
		Short: "Give up one event that waits",
		Long: `Give up one event that waits: in its queue, for a retry, or parked. It is not tried again and dies as discarded, in the dead letters, from
where ` + "`reenvio dlq redrive`" + ` can send it again. No event is skipped without a trace: that is what --to-dlq says.

TOPIC/PARTITION/OFFSET is the place where its record lies now. ` + "`reenvio events get`" + ` shows that of any event; ` + "`reenvio status`" + ` the NUMBER
and OFFSET in the topic webhooks.events of the first that is not done. One that is being sent right now dies when its request has ended,
unless it was delivered.`,
		Example: `  reenvio skip webhooks.events/3/4711 --to-dlq
  reenvio skip webhooks.retry-16s/3/815 --to-dlq --reason 'poison' --yes`,
		Args: oneArg("the place of a record, TOPIC/PARTITION/OFFSET,"),
	}
	toDLQ := cmd.Flags().Bool("to-dlq", false, "make it a dead letter (required: an event is never dropped without a trace)")
	wait := waitFlag(cmd)
	reason := reasonFlag(cmd)
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		place, err := record.ParseSource(args[0])
		if err != nil {
			return usageError{err}
		}
		if !*toDLQ {
			return usagef("an event is never dropped without a trace: --to-dlq says that it is to become a dead letter, which can be sent again")
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
		d, err := s.waitingAt(ctx, place)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("The event %s of webhook %s, produced at %s, attempts so far: %d, will die as discarded. Skip it?", clean(d.ID), clean(d.Webhook), timeText(d.ProducedAt), d.Attempts)
		if err := c.confirm(ctx, *yes, question); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, *wait)
		defer cancel()
		results, err := s.control(nil).DoNumbers(waiting, record.Command{Action: record.ActionSkip, Value: place.String(), By: caller(), Reason: *reason}, place.Partition)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result := results[0].Result
		if results[0].Pending {
			result.Result, result.Detail = resultPending, unanswered(place.Partition, *wait)
		}
		return c.printSkip(skipResult{place.String(), d.Webhook, d.ID, result}, *out)
	}
	return cmd
}

// waitingAt is the event whose record lies at a place where events wait.
func (s *session) waitingAt(ctx context.Context, place record.Source) (*record.Delivery, error) {
	t := s.topo
	known := slices.Concat([]string{t.Events(), t.Parked()}, t.Retries())
	// A delay topic that is no longer configured is still drained.
	if !slices.Contains(known, place.Topic) && !strings.HasPrefix(place.Topic, t.Prefix()+"retry-") {
		return nil, usagef("no event waits in the topic %s: those in which events wait are %s", place.Topic, strings.Join(known, ", "))
	}
	if place.Partition >= t.Partitions() {
		return nil, usagef("%s has no partition %d: they go from 0 to %d", place.Topic, place.Partition, t.Partitions()-1)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	batch, err := kafka.NewReader(s.client, place.Topic, place.Partition, place.Offset).Next(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(batch.Records, func(r *kgo.Record) bool { return r.Offset == place.Offset })
	if i < 0 {
		return nil, fmt.Errorf("there is no event at %s: it is gone, or not written yet, or the mark of a transaction lies there (%s): `reenvio events get` says where an event lies now", place, holdsText(batch))
	}
	r, read := batch.Records[i], record.FromWaiting
	if place.Topic == t.Events() {
		read = record.FromEvent
	}
	d, err := read(r)
	if invalid := (*record.InvalidError)(nil); err != nil && !errors.As(err, &invalid) { // an invalid one can be skipped too
		return nil, err
	}
	return d, nil
}

// holdsText is what a partition has, in words.
func holdsText(batch kafka.Batch) string {
	if batch.HighWatermark <= batch.LogStart {
		return "the partition is empty"
	}
	return fmt.Sprintf("the partition holds %d to %d", batch.LogStart, batch.HighWatermark-1)
}

func (c *cli) printSkip(r skipResult, out format) error {
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	} else {
		text := fmt.Sprintf("%s of %s (event %s of %s) %s", record.ActionSkip, r.Place, clean(r.EventID), clean(r.Webhook), r.Result.Result)
		if r.Detail != "" {
			text += ": " + clean(r.Detail)
		}
		fmt.Fprintln(c.stdout, text)
	}
	return c.ended(r.Result)
}
