package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/producer"
)

func newSend(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send --webhook WEBHOOK",
		Short: "Send an event to a webhook",
		Long:  "Write an event to the events topic, for a dispatcher to deliver. Exit status 0 says that Kafka has it.",
		Example: `  reenvio send --webhook crm-orders --type order.paid --data '{"order":4711}'
  reenvio send --webhook crm-orders --id order-4711-paid --data @event.json --yes
  generate-event | reenvio send --webhook crm-orders --data -`,
		Args: noArgs,
	}
	webhook := cmd.Flags().String("webhook", "", "the webhook's id (required)")
	event := producer.Event{Source: "/reenvio/cli"}
	cmd.Flags().StringVar(&event.Type, "type", "reenvio.test", "what happened")
	cmd.Flags().StringVar(&event.ID, "id", "", "the event's id, by which receivers recognise it (default: a new one)")
	data := cmd.Flags().String("data", "", "the body, byte for byte: text, @FILE, or - for standard input; without it the event has none")
	yes := yesFlag(cmd)
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *webhook == "" {
			return usagef("say which webhook the event is for: --webhook WEBHOOK")
		}
		event.Webhook = *webhook
		if err := record.ValidWebhookID(event.Webhook); err != nil {
			return usageError{err}
		}
		if err := record.ValidEventID(event.ID); event.ID != "" && err != nil {
			return usageError{err}
		}
		if cmd.Flags().Changed("data") {
			var err error
			if event.Data, err = c.content(cmd.Context(), "--data", *data); err != nil { // "" is empty, not null
				return err
			}
		}
		s, err := c.open(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		if err := s.verify(cmd.Context()); err != nil {
			return err
		}
		if c.terminal && *data != "-" { // a pipe has nobody to ask, and nothing to answer with
			if err := c.confirm(cmd.Context(), *yes, fmt.Sprintf("Send this event (%s, %d bytes) to %s?", event.Type, len(event.Data), event.Webhook)); err != nil {
				return err
			}
		}
		published, err := s.publish(cmd.Context(), event)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, published)
		}
		return printFacts(c.stdout, [][2]string{
			{"Event", published.ID},
			{"Webhook", published.Webhook},
			{"Topic", published.Topic},
			{"Partition", strconv.Itoa(int(published.Partition))},
			{"Offset", strconv.FormatInt(published.Offset, 10)},
		})
	}
	return cmd
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
