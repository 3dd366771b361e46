package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/config"
	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/process"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

// patience is how long a command waits for a broker before it says that there is none. A service waits for a minute and more, since
// brokers come back; a person wants to know.
const patience = 10 * time.Second

// session is what a command that talks to Kafka once has in its hands.
type session struct {
	settings settings
	origins  config.Origins
	topo     *topology.Topology
	log      *slog.Logger
	client   *kgo.Client
	opts     []kgo.Opt
	admin    *kadm.Client
}

// open reads the configuration and reaches a broker, or fails in bounded time. Close the session's client.
func (c *cli) open(cmd *cobra.Command) (*session, error) {
	s, origins, err := c.load(cmd)
	if err != nil {
		return nil, err
	}
	return c.openWith(cmd.Context(), s, origins)
}

// openVerified is open for a command that writes, or reads across topics: it refuses a set of topics that is not as it should be.
func (c *cli) openVerified(cmd *cobra.Command) (*session, error) {
	return c.openChecked(cmd, (*session).verify)
}

// openForCommands is open for what stops webhooks, and lets them go again: that must work also while other topics are not as they should be.
func (c *cli) openForCommands(cmd *cobra.Command) (*session, error) {
	return c.openReadable(cmd, func(t *topology.Topology) []string { return []string{t.Commands(), t.Endpoints(), t.State()} })
}

// openForDeadLetters is open for what reads the dead letters alone.
func (c *cli) openForDeadLetters(cmd *cobra.Command) (*session, error) {
	return c.openReadable(cmd, func(t *topology.Topology) []string { return []string{t.DLQ()} })
}

// openForWebhooks is open for what reads webhooks and their states alone.
func (c *cli) openForWebhooks(cmd *cobra.Command) (*session, error) {
	return c.openReadable(cmd, func(t *topology.Topology) []string { return []string{t.Endpoints(), t.State()} })
}

func (c *cli) openReadable(cmd *cobra.Command, topics func(*topology.Topology) []string) (*session, error) {
	return c.openChecked(cmd, func(s *session, ctx context.Context) error { return s.readable(ctx, topics(s.topo)...) })
}

func (c *cli) openChecked(cmd *cobra.Command, check func(*session, context.Context) error) (*session, error) {
	s, err := c.open(cmd)
	if err != nil {
		return nil, err
	}
	if err := check(s, cmd.Context()); err != nil {
		s.client.Close()
		return nil, err
	}
	return s, nil
}

func (c *cli) openWith(ctx context.Context, s settings, origins config.Origins) (*session, error) {
	if len(s.Kafka.Brokers) == 0 {
		return nil, errNoBrokers
	}
	topo, err := s.topology()
	if err != nil {
		return nil, usageError{err}
	}
	// What the client logs of its tries is for services; here the one error at the end says it.
	opts, err := kafka.Options(s.Kafka, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, usageError{err}
	}
	opts = append(opts, kgo.RetryTimeout(patience), kgo.RecordDeliveryTimeout(patience))
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making a Kafka client: %w", err)
	}
	log, err := process.NewLogger(c.stderr, s.Log)
	if err != nil {
		client.Close()
		return nil, usageError{err}
	}
	session := &session{settings: s, origins: origins, topo: topo, log: log, client: client, opts: opts, admin: kadm.NewClient(client)}
	if err := session.reach(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return session, nil
}

// reach asks the brokers for a sign of life.
func (s *session) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	err := s.client.Ping(ctx)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	where := "kafka.brokers"
	if origin := s.origins["kafka.brokers"]; origin != "" {
		where += ", set by " + origin
	}
	if refused, ok := errors.AsType[*net.OpError](err); ok { // without the client's own story around it
		err = refused
	}
	return fmt.Errorf("no Kafka broker at %s (%s) can be reached: %w; check the address, and kafka.tls.* and kafka.sasl.* if the brokers want them",
		strings.Join(s.settings.Kafka.Brokers, ", "), where, err)
}

// verify refuses a set of topics that records can't safely be written to.
func (s *session) verify(ctx context.Context) error {
	return topology.Verify(ctx, s.admin, s.topo)
}

// readable refuses topics that are absent, or have another number of partitions than is configured: what is read then would be a part, and look
// like the whole. Unlike verify it asks for no topic but these: who may only read the dead letters can.
func (s *session) readable(ctx context.Context, topics ...string) error {
	listed, err := s.admin.ListTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("looking at the topics %s: %w", strings.Join(topics, ", "), err)
	}
	for _, topic := range topics {
		detail := listed[topic]
		switch have := int32(len(detail.Partitions)); {
		case detail.Err != nil || have == 0:
			return fmt.Errorf("the topic %s is missing (or not visible to this user): if topics.prefix (%s) is right, `reenvio topics apply` makes it", topic, s.topo.Prefix())
		case have != s.topo.Partitions():
			return fmt.Errorf("the topic %s has %d partitions, but topics.partitions is %d: set it to %[2]d", topic, have, s.topo.Partitions())
		}
	}
	return nil
}

// control is the way to endpoints, states and commands. With keys, endpoints can be written and their secrets read.
func (s *session) control(keys *secrets.Keyset) *control.Control {
	return control.New(s.client, func() []kgo.Opt { return slices.Clip(s.opts) }, s.topo, keys)
}

// caller names the person for the audit trail.
func caller() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return "cli:" + name
}
