package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

const (
	partitions  = 12
	dedupWindow = 10 * time.Minute
)

// world is an embedded broker with a keyset, in this process and on loopback.
type world struct {
	broker     *kfake.Cluster
	dir        string
	keysetFile string
	keys       *secrets.Keyset
	client     *kgo.Client // produces, each record to the partition that it names
	admin      *kadm.Client
	sets       int // of topics, made so far
}

func newWorld() (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	if w.dir, err = os.MkdirTemp("", "reenvio-bench-"); err != nil {
		return nil, fmt.Errorf("making a directory for the keyset: %w", err)
	}
	w.keysetFile = filepath.Join(w.dir, "keyset.json")
	if err := secrets.Generate(w.keysetFile); err != nil {
		return nil, err
	}
	if w.keys, err = secrets.Load(secrets.Config{KeysetFile: w.keysetFile}); err != nil {
		return nil, err
	}
	if w.broker, err = kfake.NewCluster(kfake.NumBrokers(1)); err != nil {
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	opts, err := kafka.Options(w.kafka(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(100_000))
	if w.client, err = kgo.NewClient(opts...); err != nil {
		return nil, fmt.Errorf("making a Kafka client: %w", err)
	}
	w.admin = kadm.NewClient(w.client)
	return w, nil
}

func (w *world) kafka() kafka.Config {
	return kafka.Config{Brokers: w.broker.ListenAddrs(), InstanceID: "bench"}
}

// options are those of a dispatcher as it comes, that may send to this machine.
func (w *world) options(topo *topology.Topology, log *slog.Logger, registry prometheus.Registerer) dispatcher.Options {
	return dispatcher.Options{
		Config: dispatcher.Defaults(), Attempts: dispatcher.DefaultAttempts(), Kafka: w.kafka(), Topology: topo, Retry: retrytiers.Defaults(),
		Keys: w.keys, Egress: delivery.Egress{Allow: []string{"127.0.0.0/8"}, AllowHTTP: true}, DedupWindow: dedupWindow,
		Version: "bench", Log: log, Registry: registry,
	}
}

func (w *world) close() error {
	if w.client != nil {
		w.client.Close()
	}
	if w.broker != nil {
		w.broker.Close()
	}
	return os.RemoveAll(w.dir)
}

// topics makes a fresh set of topics, of a name that was never there before; its end
// takes their records out of memory.
func (w *world) topics(ctx context.Context) (*topology.Topology, func() error, error) {
	tiers, err := retrytiers.Defaults().Durations()
	if err != nil {
		return nil, nil, err
	}
	w.sets++
	topo, err := topology.New(topology.Config{Prefix: fmt.Sprintf("bench-%d.", w.sets), Partitions: partitions, Replication: 1}, tiers, dedupWindow)
	if err != nil {
		return nil, nil, err
	}
	changes, err := topology.Plan(ctx, w.admin, topo)
	if err != nil {
		return nil, nil, err
	}
	if err := changes.Apply(ctx, w.admin, nil); err != nil {
		return nil, nil, err
	}
	return topo, func() error {
		var names []string
		for _, spec := range topo.Specs() {
			names = append(names, spec.Topic)
		}
		_, err := w.admin.DeleteTopics(context.WithoutCancel(ctx), names...)
		return err
	}, nil
}

// produce writes records as fast as they are taken; next returns nil at the end.
// acked is called with each that is written, in the order of its partition.
func (w *world) produce(ctx context.Context, next func() (*kgo.Record, error), acked func(*kgo.Record)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var made error
	for ctx.Err() == nil {
		r, err := next()
		if r == nil || err != nil {
			made = err
			break
		}
		w.client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				stop(err)
			} else if acked != nil {
				acked(r)
			}
		})
	}
	if err := errors.Join(made, w.client.Flush(ctx)); err != nil {
		return fmt.Errorf("producing: %w", errors.Join(context.Cause(ctx), err))
	}
	return context.Cause(ctx)
}
