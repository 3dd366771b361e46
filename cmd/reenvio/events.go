package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/story"
	"github.com/reenvio/reenvio/internal/topology"
)

func newEvents(c *cli) *cobra.Command {
	return group("events", "Look at what became of an event", newEventsGet(c))
}

func newEventsGet(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get EVENT-ID --webhook WEBHOOK",
		Short: "Tell the story of one event: where it is, and what happened to it",
		Long: `Tell the story of one event: where it is now, what to do about it, and what happened to it until now.

It reads the partitions of the webhook's number in the topics events, retry-*, parked, attempts, dlq and state, from --since on; what still
waits is found however old it is. The same id is told several times when it was redriven, or sent more than once: each is a copy.

-o json prints one object: webhook, event_id, partition, state and holds (what keeps the webhook from being sent to), and copies, the newest last. A
copy has source (topic/partition/offset of its event record), moved_from, redrive, event_type, produced_at, bytes, status and steps. Its status is
queued, waiting, parked, delivered, dead, duplicate, filtered or ended (it is done, and no record says how). A step has step (queued, attempt,
waiting, parked, dead), at, place (of the record that says so), open (the event is there now), attempt, and besides: an attempt has the fields of the
attempt record; what waits due_at; what is parked or dead reason and message; times says how often, when it was more than once.`,
		Example: `  reenvio events get order-4711-paid --webhook crm-orders
  reenvio events get order-4711-paid --webhook crm-orders --since 30d -o json | jq -r '.copies[-1].status'`,
		Args: oneArg("an event id"),
	}
	webhook := cmd.Flags().String("webhook", "", "the webhook's id (required)")
	from := since{text: "7d", time: time.Now().AddDate(0, 0, -7)}
	cmd.Flags().Var(&from, "since", "read what was written since then: how long ago (24h, 30d), or an RFC 3339 time")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *webhook == "" {
			return usagef("say which webhook the event was for: --webhook WEBHOOK")
		}
		if err := cmp.Or(record.ValidWebhookID(*webhook), record.ValidEventID(args[0])); err != nil {
			return usageError{err}
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		endpoint, err := s.endpointIfAny(cmd.Context(), *webhook)
		if err != nil {
			return err
		}
		progress := c.progress()
		told, err := s.story(reading(progress)).Tell(cmd.Context(), *webhook, args[0], from.time)
		progress.end()
		if err != nil {
			return err
		}
		told.Holds = holdsOf(endpoint, told.Holds)
		if len(told.Incomplete) > 0 {
			fmt.Fprintf(c.stderr, "The newest records of %s are not decided yet (a transaction is open on them), and are not told.\n", strings.Join(told.Incomplete, ", "))
		}
		if len(told.Copies) == 0 {
			return nowhere(s.topo, told, endpoint.ID != "", from.time)
		}
		if *out == formatJSON {
			return printJSON(c.stdout, told)
		}
		t := newTale(told, endpoint, time.Now())
		if t.orphan, err = overview.Orphaned(cmd.Context(), s.lookAt(nil), told.Number); err != nil {
			return err
		}
		return c.printStory(t)
	}
	return cmd
}

// endpointIfAny is a webhook's configuration, with no more than its id when that can't be read, and empty when there is none (any more): events may
// have been sent to it all the same.
func (s *session) endpointIfAny(ctx context.Context, id string) (record.Endpoint, error) {
	endpoint, _, err := s.control(nil).GetEndpoint(ctx, id)
	switch {
	case errors.Is(err, control.ErrNotFound), errors.Is(err, control.ErrDeleted):
		return record.Endpoint{}, nil
	case endpoint.ID != "":
		return endpoint, nil
	}
	return endpoint, err
}

// nowhere says what was searched, and why there may be nothing.
func nowhere(topo *topology.Topology, told story.Story, webhookExists bool, from time.Time) error {
	why := fmt.Sprintf("it was sent with another id, to another webhook, or so long ago that the topics have let go of it (%s); --since 30d looks further back", keeping(topo))
	if !webhookExists {
		why = fmt.Sprintf("there is no webhook %s (`reenvio webhooks list` shows those there are)", told.Webhook)
	}
	return fmt.Errorf("nothing is known of an event %s of %s in partition %d of %s*, since %s: %s",
		told.EventID, told.Webhook, told.Number, topo.Prefix(), timeText(record.At(from)), why)
}

// keeping is how long the topics keep what they hold, unless somebody has changed that on the cluster.
func keeping(topo *topology.Topology) string {
	days := map[string]string{}
	for _, spec := range topo.Specs() {
		if ms, err := time.ParseDuration(spec.Config["retention.ms"] + "ms"); err == nil {
			days[spec.Topic] = fmt.Sprintf("%d days", int(ms.Hours()/24))
		}
	}
	return fmt.Sprintf("events and attempts after %s, dead letters after %s", days[topo.Events()], days[topo.DLQ()])
}
