package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/producer"
)

// The webhooks of `reenvio dev`, which are also the paths of its receiver.
const (
	demoOK    = "demo-ok"    // takes every event
	demoFlaky = "demo-flaky" // refuses each event twice
	demoDown  = "demo-down"  // always fails
)

// downEvents are the only events that demo-down ever gets by itself: 2 events of 5 attempts each are the 10 failures in a row that pause
// it. Their ids are fixed, so that a later start knows which are there.
var downEvents = []string{demoDown + "-1", demoDown + "-2"}

// demo is what `reenvio dev` shows.
type demo struct {
	session  *session
	keys     *secrets.Keyset
	receiver *receiver
}

// createWebhooks makes the demo webhooks that are absent. One that a person has changed stays as it is; only where it still points to
// the receiver of an earlier run, which had another port, it follows.
func (d *demo) createWebhooks(ctx context.Context) error {
	ctl := d.session.control(d.keys)
	for id, description := range map[string]string{
		demoOK:    "takes every event",
		demoFlaky: fmt.Sprintf("refuses each event %d times", flakyFailures),
		demoDown:  "always fails",
	} {
		have, etag, err := ctl.GetEndpoint(ctx, id)
		switch {
		case errors.Is(err, control.ErrNotFound), errors.Is(err, control.ErrDeleted):
			have = record.Endpoint{ID: id, Description: description, Secrets: []record.Secret{{Value: signing.NewSecret()}}}
		case err != nil:
			return err
		default:
			if have, err = d.keys.OpenEndpoint(have); err != nil {
				return fmt.Errorf("reading %s (the keyset is another than that of the last start?): %w", id, err)
			}
			if !d.moved(have) {
				continue
			}
		}
		have.URL, have.UpdatedBy = d.receiver.url(id), "reenvio dev"
		if _, err := ctl.WriteEndpoint(ctx, have, etag); err != nil {
			return err
		}
	}
	return nil
}

// moved says that a demo webhook points to where the receiver was, not to where it is.
func (d *demo) moved(e record.Endpoint) bool {
	u, err := url.Parse(e.URL)
	if err != nil || e.URL == d.receiver.url(e.ID) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback() && u.Path == "/"+e.ID
}

// sendEvents sends what each start sends, and what demo-down has not got yet.
func (d *demo) sendEvents(ctx context.Context) error {
	have, err := d.eventsOf(ctx, demoDown)
	if err != nil {
		return err
	}
	var events []producer.Event
	for n := range 3 {
		events = append(events, demoEvent(demoOK, "", n))
	}
	events = append(events, demoEvent(demoFlaky, "", 0))
	for n, id := range downEvents {
		if !have[id] {
			events = append(events, demoEvent(demoDown, id, n))
		}
	}
	p, err := d.session.producer()
	if err != nil {
		return err
	}
	defer p.Close()
	for _, event := range events {
		if _, err := p.Publish(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

func demoEvent(webhook, id string, n int) producer.Event {
	return producer.Event{
		Webhook: webhook, ID: id, Type: "demo.order.created", Source: "/reenvio/dev", ContentType: "application/json",
		Data: fmt.Appendf(nil, `{"order":%d,"at":%q}`, n+1, time.Now().UTC().Format(time.RFC3339)),
	}
}

// eventsOf are the ids of all events of a webhook that are still in the topic.
func (d *demo) eventsOf(ctx context.Context, webhook string) (map[string]bool, error) {
	ids := map[string]bool{}
	topo := d.session.topo
	_, err := kafka.ReadAll(ctx, d.session.client, topo.Events(), topo.PartitionFor(webhook), func(r *kgo.Record) error {
		if event, err := record.FromEvent(r); err == nil && event.Webhook == webhook {
			ids[event.ID] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the events of %s: %w", webhook, err)
	}
	return ids, nil
}
