package dispatcher

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/balancer"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"
)

// Options are all that a dispatcher is made of.
type Options struct {
	Config   Config
	Attempts Attempts
	Kafka    kafka.Config
	Topology *topology.Topology
	Retry    retrytiers.Config
	Keys     *secrets.Keyset
	Egress   delivery.Egress
	// DedupWindow is how long a second copy of a delivered event is taken for a
	// duplicate; 0 is never.
	DedupWindow time.Duration
	// EventTypes are the event types that metrics name.
	EventTypes []string
	From       From   // the answer to expired offsets
	Version    string // of the build
	Log        *slog.Logger
	Registry   prometheus.Registerer
	Transport  Transport
	// Now is the clock, in tests; by default the machine's. The wall clock may be set at
	// any time: what is written to records and read from them goes by it, and what is
	// measured inside by the monotonic reading, which must be there too.
	Now func() time.Time
}

// Transport replaces the network of requests, in tests. The zero value is the
// machine's own.
type Transport struct {
	// Dial connects to a literal ip:port that the egress rule has allowed.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dispatcher owns partition numbers and delivers their events.
type Dispatcher struct {
	cfg       Config
	options   Options
	instance  string
	boot      string // tells the lives of one instance id apart
	version   string
	log       *slog.Logger
	now       func() time.Time
	topo      *topology.Topology
	keys      *secrets.Keyset
	schedule  retrytiers.Schedule
	line      *retrytiers.Line
	successes successes
	from      From
	sender    *delivery.Sender
	slots     *slots
	hosts     *hosts
	metrics   *metrics

	topics    []string // what the group subscribes to: events, retry topics, commands
	topicIDs  map[string][16]byte
	topicByID map[[16]byte]string

	ctx    context.Context // of everything inside; outlives the context of Run until the stop is done
	cancel context.CancelFunc
	failed chan error

	group     *kgo.Client // membership only
	plain     *kgo.Client // reads and asks
	fetch     *fetcher
	txn       *transactor
	cycle     *cycle
	ownership *ownership
	endGroup  context.CancelFunc // whatever the group client is about
	lease     lease
	dials     dials

	parkedLife   atomic.Int64 // how long an event may stay parked; 0: not known yet
	eventTypes   eventTypes
	keysWarned   sync.Once
	joined       atomic.Bool // group is set
	heartbeatNow chan struct{}
	running      sync.WaitGroup
}

// New checks the options. It does not talk to Kafka yet.
func New(o Options) (*Dispatcher, error) {
	tiers, err := o.Retry.Durations()
	if err := errors.Join(o.Config.Validate(), o.Attempts.Validate(), o.Kafka.Validate(), o.Retry.Validate(), err); err != nil {
		return nil, err
	}
	if o.Keys == nil {
		return nil, errors.New("a dispatcher needs a keyset to read the webhooks' secrets: set secrets.keyset_file or secrets.keyset")
	}
	if o.Config.Group == "" {
		o.Config.Group = GroupOf(o.Topology.Prefix())
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	sender, err := delivery.New(delivery.Options{
		Egress: o.Egress, Version: o.Version, MaxInFlight: o.Config.MaxInFlight, Dial: o.Transport.Dial, Now: o.Now,
	})
	if err != nil {
		return nil, err
	}
	types, err := newEventTypes(o.EventTypes)
	if err != nil {
		return nil, err
	}
	boot := make([]byte, 6)
	_, _ = rand.Read(boot) // never fails (crypto/rand)
	d := &Dispatcher{
		cfg: o.Config, options: o, instance: o.Kafka.InstanceID, boot: hex.EncodeToString(boot), version: o.Version, log: o.Log, now: o.Now,
		topo: o.Topology, keys: o.Keys, schedule: retrytiers.NewSchedule(o.Retry), line: retrytiers.NewLine(tiers),
		successes: successes(o.Attempts.Successes), from: o.From,
		sender: sender, slots: newSlots(o.Config.MaxInFlight), hosts: newHosts(o.Config.MaxPerHost), failed: make(chan error, 1), heartbeatNow: make(chan struct{}, 1), eventTypes: types,
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.metrics = newMetrics(d, o.Registry)
	d.ownership = newOwnership(d)
	d.cycle = newCycle(d)
	d.txn = newTransactor(d)
	return d, nil
}

// Run delivers until ctx ends; then it drains: nothing new starts, what is in
// flight ends within the drain timeout, the last cycle is committed, and the group
// is left. It returns an error when it can't go on: the topics are not as they
// should be, offsets have expired, or a twin runs with the same instance id.
// A process that is killed instead of stopped loses nothing either; it repeats
// what was in flight.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.cancel()
	if err := d.start(ctx); err != nil {
		d.close()
		return err
	}
	d.log.Info("dispatcher started", "instance", d.instance, "group", d.cfg.Group, "topics", len(d.topics), "numbers", d.topo.Partitions())
	var err error
	select {
	case <-ctx.Done():
		d.log.Info("dispatcher stopping: nothing new starts, requests in flight may end", "drain_timeout", d.cfg.DrainTimeout.String())
		d.ownership.close(d.ctx)
		d.closeGroup() // before leaving, or it would join again
		d.leave()
	case err = <-d.failed:
		// Without draining: who fails here may own nothing any more.
	}
	d.close()
	if err != nil {
		d.log.Error("dispatcher stopped", "error", err)
		return err
	}
	d.log.Info("dispatcher stopped")
	return nil
}

func (d *Dispatcher) start(ctx context.Context) (err error) {
	if d.plain, err = d.client("plain"); err != nil {
		return err
	}
	adm := kadm.NewClient(d.plain)
	if err := topology.Verify(ctx, adm, d.topo); err != nil {
		return err
	}
	drained, err := topology.Drained(ctx, adm, d.topo)
	if err != nil {
		return err
	}
	if len(drained) > 0 {
		d.log.Info("retry topics that are no longer configured are drained", "topics", drained)
	}
	d.topics = append(d.topo.Owned(), drained...)
	if err := d.learnTopicIDs(ctx, adm); err != nil {
		return err
	}
	// Whatever a former process with this instance id left open is aborted here,
	// before we can be given a number.
	if err := d.txn.connect(ctx); err != nil {
		return err
	}
	quick, err := d.fetchClient("fetch", quickWait)
	if err != nil {
		return err
	}
	patient, err := d.fetchClient("fetch_idle", patientWait)
	if err != nil {
		quick.Close()
		return err
	}
	d.fetch = newFetcher(d, quick, patient)
	d.running.Go(func() { d.fetch.run(d.ctx) })
	d.running.Go(func() { d.cycle.run(d.ctx) })
	return d.join()
}

// fetchBytes is what one fetch takes of one partition.
const fetchBytes = 256 << 10

// fetchClient makes a client for the fetcher. A fetch that finds nothing new waits.
func (d *Dispatcher) fetchClient(name string, wait time.Duration) (*kgo.Client, error) {
	// Known without a partition to fetch: one that is added before kgo has looked at its
	// topic is looked up in vain, and then waits for a second.
	known := map[string]map[int32]kgo.Offset{d.topo.Endpoints(): {}}
	for _, topic := range d.topics {
		known[topic] = map[int32]kgo.Offset{}
	}
	return d.client(name,
		kgo.ConsumePartitions(known),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the end of endpoints-p is a marker, and must be seen
		kgo.FetchMaxWait(wait),
		// Large enough never to cut an answer short of a partition: the embedded broker
		// then forgets to say which transactions in it were aborted.
		kgo.FetchMaxBytes(int32(min(1<<30, fetchBytes*int64(len(d.topics)+1)*int64(d.topo.Partitions())))),
		kgo.FetchMaxPartitionBytes(fetchBytes),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
}

// join makes us a member of the group. The group client fetches nothing: see fetcher.
func (d *Dispatcher) join() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	d.endGroup = cancel
	d.group, err = d.client("group",
		kgo.WithContext(ctx),
		kgo.ConsumerGroup(d.cfg.Group),
		kgo.ConsumeTopics(d.topics...),
		kgo.InstanceID(d.instance),
		kgo.Balancers(oneSet{balancer.New(), d}),
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.RebalanceTimeout(d.cfg.DrainTimeout+rebalanceMargin),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(d.ownership.onAssigned),
		kgo.OnPartitionsRevoked(d.ownership.onRevoked),
		kgo.OnPartitionsLost(d.ownership.onLost),
		kgo.WithHooks(groupErrors{d}),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err
	}
	d.group.PauseFetchTopics(d.topics...)
	d.joined.Store(true)
	d.running.Go(func() {
		// Nothing comes but notices of the group's errors, which the hook has logged.
		for !d.group.PollFetches(d.ctx).IsClientClosed() && d.ctx.Err() == nil {
		}
	})
	d.running.Go(func() { d.keepLease(d.ctx) })
	d.running.Go(func() { d.watchLease(d.ctx) })
	d.running.Go(func() { d.watchRetention(d.ctx) })
	return nil
}

// groupErrors hears what ends a group session.
type groupErrors struct{ d *Dispatcher }

func (g groupErrors) OnGroupManageError(err error) {
	if errors.Is(err, kerr.FencedInstanceID) { // kgo would try for ever
		g.d.fail(g.d.twin())
		return
	}
	g.d.log.Warn("group session ended, joining again", "error", err)
}

func (d *Dispatcher) twin() error {
	return fmt.Errorf("another dispatcher runs with kafka.instance_id %q in group %q: it has our place, so this one stops; give each its own id", d.instance, d.cfg.Group)
}

// fail ends Run; the first failure counts.
func (d *Dispatcher) fail(err error) {
	select {
	case d.failed <- err:
		d.log.Error("dispatcher can't go on", "error", err)
	default:
	}
}

func (d *Dispatcher) beatNow() {
	select {
	case d.heartbeatNow <- struct{}{}:
	default:
	}
}

// client makes a Kafka client; name is what metrics call it.
func (d *Dispatcher) client(name string, more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := kafka.Options(d.options.Kafka, d.log)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.WithHooks(d.metrics.clientMetrics(name), &d.dials))
	cl, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("making a Kafka client: %w", err)
	}
	return cl, nil
}

// recordRetries is how often a record is tried that a broker can't take now: its disk
// is full, or too few replicas are in sync. Then the transaction ends without it, and
// the reason is known; by default it would be tried in silence until the coordinator
// times the transaction out.
const recordRetries = 10

// newProducer makes the client that writes transactions.
func (d *Dispatcher) newProducer(id string) (*kgo.Client, error) {
	compressor, err := kafka.NewCompressor(record.MaxRecordBytes)
	if err != nil {
		return nil, err
	}
	return d.client("transactions",
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(transactionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), // by number, never hashed again
		// kgo counts before compression, and a stored event may have been compressed
		// well; the broker's limit is the one that holds (see produce).
		kgo.ProducerBatchMaxBytes(64<<20),
		kgo.BrokerMaxWriteBytes(100<<20),
		kgo.WithCompressor(compressor),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1<<20),
		kgo.UnknownTopicRetries(-1),
		kgo.RecordRetries(recordRetries),
	)
}

func (d *Dispatcher) learnTopicIDs(ctx context.Context, adm *kadm.Client) error {
	listed, err := adm.ListTopics(ctx, d.topics...)
	if err != nil {
		return fmt.Errorf("listing topics: %w", err)
	}
	d.topicIDs, d.topicByID = map[string][16]byte{}, map[[16]byte]string{}
	for _, t := range listed.Sorted() {
		if t.Err != nil {
			return fmt.Errorf("listing topic %s: %w", t.Topic, t.Err)
		}
		d.topicIDs[t.Topic], d.topicByID[t.ID] = t.ID, t.Topic
	}
	return nil
}

// closeGroup ends the membership. kgo ends what it is about first, joining or leaving:
// while no broker answers it would try for a minute, and joining waits for the others.
func (d *Dispatcher) closeGroup() {
	defer time.AfterFunc(leaveTime, d.endGroup).Stop()
	d.group.Close()
	d.endGroup()
}

// leave tells the group that we are gone, so that others take over at once. kgo
// does not for a static member.
func (d *Dispatcher) leave() {
	if !d.cfg.LeaveOnStop {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, leaveTime)
	defer cancel()
	leave := kadm.LeaveGroup(d.cfg.Group).Reason("stopped").InstanceIDs(d.instance)
	if _, err := kadm.NewClient(d.plain).LeaveGroup(ctx, leave); err != nil {
		d.log.Warn("leaving the group failed, the others take over when the session has timed out", "error", err)
	}
}

func (d *Dispatcher) close() {
	d.cancel()
	if d.group != nil {
		d.closeGroup()
	}
	if d.fetch != nil {
		d.fetch.close()
	}
	d.running.Wait()
	d.ownership.wait()
	d.txn.close()
	if d.plain != nil {
		d.plain.Close()
	}
	d.sender.Close()
	d.metrics.unregister()
}
