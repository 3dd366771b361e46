package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/producer"
)

func newSend(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send --webhook WEBHOOK",
		Short: "Send an event to a webhook",
		Long: `Write an event to the events topic, for a dispatcher to deliver. Exit status 0 says that Kafka has it.

--wait tells of each attempt as it comes, until the event is delivered, or left out since its id was delivered shortly before (exit status 0),
or dead, or the time is up (1). It goes on by itself then. Another time than 30s is given with an equals sign: --wait=2m. With -o json the
answer has outcome (delivered, duplicate, dead, pending) besides, attempts and status (where it is) as ` + "`reenvio events get`" + ` has them,
and next_step when there is something to do.`,
		Example: `  reenvio send --webhook crm-orders --type order.paid --data '{"order":4711}'
  reenvio send --webhook crm-orders --id order-4711-paid --data @event.json --yes
  reenvio send --webhook crm-orders --data '{"order":4711}' --wait
  generate-event | reenvio send --webhook crm-orders --data -`,
		Args: noArgs,
	}
	webhook := cmd.Flags().String("webhook", "", "the webhook's id (required)")
	event := producer.Event{Source: "/reenvio/cli"}
	cmd.Flags().StringVar(&event.Type, "type", "reenvio.test", "what happened")
	cmd.Flags().StringVar(&event.ID, "id", "", "the event's id, by which receivers recognise it (default: a new one)")
	data := cmd.Flags().String("data", "", "the body, byte for byte: text, @FILE, or - for standard input; without it the event has none")
	wait := durationFlag(cmd.Flags(), "wait", 0, "wait until it is delivered or dead, this long at most")
	cmd.Flags().Lookup("wait").NoOptDefVal = "30s"
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *wait <= 0 && cmd.Flags().Changed("wait") {
			return usagef("--wait is %s: it must be longer than 0", *wait)
		}
		if *webhook == "" {
			return usagef("say which webhook the event is for: --webhook WEBHOOK")
		}
		event.Webhook = *webhook
		if err := record.ValidWebhookID(event.Webhook); err != nil {
			return usageError{err}
		}
		if cmd.Flags().Changed("id") { // "" would ask for a new one: a script's mistake
			if err := record.ValidEventID(event.ID); err != nil {
				return usageError{err}
			}
		}
		if cmd.Flags().Changed("data") {
			var err error
			if event.Data, err = c.content(cmd.Context(), "--data", *data); err != nil { // "" is empty, not null
				return err
			}
		}
		s, err := c.openVerified(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		c.warnOfNoWebhook(cmd.Context(), s, event.Webhook)
		if c.terminal && *data != "-" { // a pipe has nobody to ask, and nothing to answer with
			if err := c.confirm(cmd.Context(), *yes, fmt.Sprintf("Send this event (%s, %s) to %s?", event.Type, overview.Plural(len(event.Data), "byte"), event.Webhook)); err != nil {
				return err
			}
		}
		following := &sent{c: c, began: time.Now(), where: "it was not seen on its topic yet"}
		if *wait > 0 { // what is there already is none of the event's: so before it is sent
			if following.endpoint, err = s.endpointIfAny(cmd.Context(), event.Webhook); err != nil {
				return err
			}
			number := s.topo.PartitionFor(event.Webhook)
			following.orphaned = func(ctx context.Context) (bool, error) { return overview.Orphaned(ctx, s.lookAt(nil), number) }
			if following.watch, err = s.story(quietly).Watch(cmd.Context(), event.Webhook); err != nil {
				return err
			}
		}
		if following.event, err = s.publish(cmd.Context(), event); err != nil {
			return err
		}
		if err := c.printSent(following.event, *out, *wait > 0); err != nil || *wait == 0 {
			return err
		}
		return following.await(cmd.Context(), *wait, *out)
	}
	return cmd
}

// warnOfNoWebhook tells of an id that is misspelt, perhaps. Nothing is held up by it: a webhook may be created after its first events, and who
// may only write events can't look.
func (c *cli) warnOfNoWebhook(ctx context.Context, s *session, id string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, _, err := s.control(nil).GetEndpoint(ctx, id); errors.Is(err, control.ErrNotFound) || errors.Is(err, control.ErrDeleted) {
		fmt.Fprintf(c.stderr, "Warning: %v. The event becomes a dead letter, unless the webhook is created before its turn.\n", whereToLook(err))
	}
}

// printSent prints what Kafka has. To a program that waits for more, all is said in one object at the end.
func (c *cli) printSent(e producer.Published, out format, waits bool) error {
	if out == formatJSON {
		if waits {
			return nil
		}
		return printJSON(c.stdout, e)
	}
	return printFacts(c.stdout, [][2]string{
		{"Event", e.ID},
		{"Webhook", e.Webhook},
		{"Topic", e.Topic},
		{"Partition", strconv.Itoa(int(e.Partition))},
		{"Offset", strconv.FormatInt(e.Offset, 10)},
	})
}

// publish writes one event, within a person's patience.
func (s *session) publish(ctx context.Context, event producer.Event) (producer.Published, error) {
	p, err := s.producer()
	if err != nil {
		return producer.Published{}, err
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	published, err := p.Publish(ctx, event)
	if errors.Is(err, producer.ErrInvalid) {
		return published, usageError{err}
	}
	return published, err
}

func (s *session) producer() (*producer.Producer, error) {
	return producer.New(producer.Options{Brokers: s.settings.Kafka.Brokers, Topic: s.topo.Events(), Client: s.opts})
}
