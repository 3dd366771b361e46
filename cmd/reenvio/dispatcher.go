package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/internal/process"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

func newDispatcher(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dispatcher",
		Short: "Deliver events: the service",
		Long: `Deliver events to their webhooks. Run several to share the work: each owns some of the partition numbers.

A first SIGTERM or Ctrl-C drains: nothing new starts, requests in flight end (dispatcher.drain_timeout), what they came to is committed.
A second one ends the process at once; nothing is lost by that, but what was in flight is sent again.`,
		Example: `  reenvio dispatcher --config /etc/reenvio/reenvio.yaml
  reenvio dispatcher --from earliest      # once, when the offsets of the group have expired`,
		Args: noArgs,
	}
	where := cmd.Flags().String("from", "", "where to begin when committed offsets have expired: earliest, latest or a time in RFC 3339")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, err := dispatcher.ParseFrom(*where)
		if err != nil {
			return usageError{err}
		}
		s, origins, err := c.loadOwn(cmd)
		if err != nil {
			return err
		}
		keys, err := secrets.Load(s.Secrets)
		if err != nil {
			return usageError{fmt.Errorf("a dispatcher can't sign without a keyset: %w", err)}
		}
		if len(s.Kafka.Brokers) == 0 { // that of a `reenvio dev` is for its own dispatcher
			return usagef("no Kafka broker is configured: set kafka.brokers (%s)", waysTo("kafka.brokers"))
		}
		session, err := c.openWith(cmd.Context(), s, origins) // says quickly when no broker is there
		if err != nil {
			return err
		}
		session.client.Close()
		return serve(cmd.Context(), service{settings: s, topo: session.topo, keys: keys, from: from, log: session.log})
	}
	return cmd
}

// service is what a dispatcher with its admin port is made of.
type service struct {
	settings settings
	topo     *topology.Topology
	keys     *secrets.Keyset
	from     dispatcher.From
	log      *slog.Logger
	ready    func(adminAddr string) error // called when the admin port is open, before anything is delivered; may be nil
}

// teardownTime is for what is left when the dispatcher has drained.
const teardownTime = 10 * time.Second

// serve delivers until ctx ends, and has drained when it returns.
func serve(ctx context.Context, s service) (err error) {
	registry := process.NewRegistry()
	d, err := dispatcher.New(dispatcher.Options{
		Config: s.settings.Dispatcher, Attempts: s.settings.Attempts, Kafka: s.settings.Kafka, Topology: s.topo, Retry: s.settings.Retry, DedupWindow: s.settings.Dedup.Window,
		Keys: s.keys, Egress: s.settings.Egress, EventTypes: s.settings.Metrics.EventTypes, From: s.from, Version: version(), Log: s.log, Registry: registry,
	})
	if err != nil {
		return usageError{err}
	}
	admin, err := process.StartAdmin(s.settings.Admin, process.AdminOptions{Registry: registry, Live: []process.Probe{d.Live}, Ready: []process.Probe{d.Ready}, Log: s.log})
	if err != nil {
		return err
	}
	var teardown process.Teardown
	teardown.Add("admin server", admin.Stop)
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownTime)
		defer cancel()
		err = errors.Join(err, teardown.Run(stopping, s.log))
	}()
	defer context.AfterFunc(ctx, admin.Draining)()
	if s.ready != nil {
		if err := s.ready(admin.Addr()); err != nil {
			return err
		}
	}
	return d.Run(ctx)
}
