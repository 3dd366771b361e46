package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/internal/config"
	"github.com/reenvio/reenvio/internal/process"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

// devFlags are those that belong to `reenvio dev` alone.
type devFlags struct {
	dataDir                  string
	brokerPort, receiverPort int
}

func newDev(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try it: broker, dispatcher, a sample receiver and a page to look at, in one process",
		Long: `Run everything in one process: an embedded broker that keeps its data, a dispatcher, and a sample receiver with three webhooks.

  demo-ok     takes every event
  demo-flaky  refuses each event twice, so that you see retries
  demo-down   always fails: two events die, and the tenth failure in a row pauses it

What happens is printed as it happens, and shown on a page (http://127.0.0.1:7090/, see dlq.listen). Meanwhile the other commands work in
a second terminal, in the same directory.
Ctrl-C ends it cleanly; the next start goes on where this one stopped.`,
		Example: `  reenvio dev
  reenvio dev --data-dir /tmp/reenvio --broker-port 0 --receiver-port 0 --admin.listen 127.0.0.1:0 --dlq.listen 127.0.0.1:0`,
		Args: noArgs,
	}
	var flags devFlags
	cmd.Flags().StringVar(&flags.dataDir, "data-dir", defaultDataDir, "where the broker's data, the keyset and dev.json are kept")
	cmd.Flags().IntVar(&flags.brokerPort, "broker-port", 7092, "port of the broker on 127.0.0.1; 0 is any free one")
	cmd.Flags().IntVar(&flags.receiverPort, "receiver-port", 7091, "port of the sample receiver on 127.0.0.1; 0 is any free one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(validPort("--broker-port", flags.brokerPort), validPort("--receiver-port", flags.receiverPort)); err != nil {
			return usageError{err}
		}
		if flags.dataDir == "" { // else it would be this very directory
			return usagef("--data-dir is empty: name a directory, or leave the flag out for %s", defaultDataDir)
		}
		s, origins, err := c.loadOver(cmd, devDefaults(), config.Base{})
		if err != nil {
			return err
		}
		if len(s.Kafka.Brokers) > 0 {
			return usagef("`reenvio dev` brings its own broker, but kafka.brokers is set (%s): take it away, or run `reenvio dispatcher` against that cluster", origins["kafka.brokers"])
		}
		if s.Topics.Replication > 1 {
			return usagef("`reenvio dev` has one broker, but topics.replication is %d (%s): take it away", s.Topics.Replication, origins["topics.replication"])
		}
		if err := c.dev(cmd.Context(), s, flags); err != nil {
			return err
		}
		fmt.Fprintln(c.stdout, "\nStopped. The next start goes on from here.")
		return nil
	}
	return cmd
}

func validPort(flag string, port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("%s is %d: it must be 0 (any free one) to 65535", flag, port)
	}
	return nil
}

// devDefaults are for one machine: what is on it may be sent to, without TLS, and every record has one copy. The log is quiet, since
// what it says of each attempt is told more pleasantly.
func devDefaults() settings {
	s := defaultSettings()
	s.Kafka.InstanceID = "dev"
	s.Topics.Replication = 1
	s.Egress.AllowHTTP = true
	s.Egress.Allow = []string{"127.0.0.0/8", "::1/128"}
	s.Log.Level = "error"
	return s
}

// dev runs until ctx ends, and has taken everything down when it returns.
func (c *cli) dev(ctx context.Context, s settings, flags devFlags) (err error) {
	log, err := process.NewLogger(c.stderr, s.Log)
	if err != nil {
		return usageError{err}
	}
	var teardown process.Teardown
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownTime)
		defer cancel()
		err = errors.Join(err, teardown.Run(stopping, log))
	}()

	dir, err := openDataDir(flags.dataDir)
	if err != nil {
		return err
	}
	teardown.Add("data directory", func(context.Context) error { return dir.release() })
	keys, err := devKeyset(&s, dir)
	if err != nil {
		return err
	}
	broker, err := startBroker(flags.brokerPort, dir)
	if err != nil {
		return err
	}
	teardown.Add("broker", func(context.Context) error { broker.Close(); return nil })
	s.Kafka.Brokers = broker.ListenAddrs()
	session, err := c.openWith(ctx, s, nil)
	if err != nil {
		return err
	}
	teardown.Add("client", func(context.Context) error { session.client.Close(); return nil })
	if err := applyTopics(ctx, session); err != nil {
		return err
	}
	receiver, err := startReceiver(flags.receiverPort)
	if err != nil {
		return err
	}
	teardown.Add("sample receiver", receiver.stop)
	demo := &demo{session: session, keys: keys, receiver: receiver}
	if err := demo.createWebhooks(ctx); err != nil {
		return err
	}
	listener, err := listenPage(s.DLQ.Listen)
	if err != nil {
		return err
	}
	tell := newNarrator(c.stdout, selfCommand())
	page := &page{session: session, flow: newFlow(), receiver: receiver, self: tell.self, log: log, listener: listener}
	teardown.Add("page", page.stop)
	tail, err := startTail(ctx, session, tell, page.flow, log)
	if err != nil {
		return err
	}
	teardown.Add("tail of the topics", func(context.Context) error { tail.stop(); return nil })

	return serve(ctx, service{settings: s, topo: session.topo, keys: keys, log: log, ready: func(admin string) error {
		file := devFileOf(s, devPorts{
			Broker: portOf(s.Kafka.Brokers[0]), Admin: portOf(admin), Receiver: receiver.port(), Page: portOf(listener.Addr().String()),
		})
		if err := page.start(file); err != nil {
			return err
		}
		if err := file.write(dir.path); err != nil {
			return err
		}
		tell.welcome(file, dir.path, page.url())
		return demo.sendEvents(ctx)
	}})
}

// devKeyset is the person's own, or one that is made once for the data directory.
func devKeyset(s *settings, dir *dataDir) (*secrets.Keyset, error) {
	if s.Secrets.KeysetFile == "" && s.Secrets.Keyset == "" {
		s.Secrets.KeysetFile = dir.file("keyset.json")
		if _, err := os.Stat(s.Secrets.KeysetFile); errors.Is(err, os.ErrNotExist) {
			if err := secrets.Generate(s.Secrets.KeysetFile); err != nil {
				return nil, err
			}
		}
	}
	keys, err := secrets.Load(s.Secrets)
	if err != nil {
		return nil, usageError{err}
	}
	return keys, nil
}

func startBroker(port int, dir *dataDir) (*kfake.Cluster, error) {
	// kfake would say "address in use" and no more.
	probe, err := listenLoopback(port, "the broker", "--broker-port")
	if err != nil {
		return nil, err
	}
	port = probe.Addr().(*net.TCPAddr).Port
	if err := probe.Close(); err != nil {
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	broker, err := kfake.NewCluster(kfake.Ports(port), kfake.DataDir(dir.file("broker")), kfake.ClusterID("reenvio-dev"))
	if err != nil {
		return nil, fmt.Errorf("starting the broker on the data of %s: %w", dir.file("broker"), err)
	}
	return broker, nil
}

// applyTopics makes the topics as they should be, without asking: the broker is ours alone.
func applyTopics(ctx context.Context, s *session) error {
	changes, err := topology.Plan(ctx, s.admin, s.topo)
	if err != nil {
		return err
	}
	return changes.Apply(ctx, s.admin, nil)
}

// devFileOf is what clients must know of this process.
func devFileOf(s settings, ports devPorts) *devFile {
	file := &devFile{
		PID: os.Getpid(), Brokers: s.Kafka.Brokers, Prefix: s.Topics.Prefix, KeysetFile: s.Secrets.KeysetFile,
		Ports: ports, Settings: map[string]string{},
	}
	for _, field := range config.Fields(&s) {
		section, _, _ := strings.Cut(field.Key, ".")
		switch {
		case slices.Contains([]string{"topics", "retry", "dedup", "egress"}, section),
			field.Key == "dispatcher.group" && s.Dispatcher.Group != dispatcher.GroupOf(s.Topics.Prefix): // else it follows from the prefix
			file.Settings[field.Key] = field.Text()
		}
	}
	return file
}

func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}
