// Package producer is the way in: services publish events with it, and a
// dispatcher delivers them to webhooks over HTTP.
//
//	p, err := producer.New(producer.Options{Brokers: []string{"kafka:9092"}})
//	...
//	published, err := p.Publish(ctx, producer.Event{
//		Webhook: "crm", Type: "order.paid", Source: "/orders", Data: body,
//	})
//
// When Publish returns without an error, the event is on all in-sync replicas
// and will be delivered, or end as a dead letter that says why. PublishAll does
// so with many events at once, and PublishAsync calls back. Nothing but a
// Kafka client is needed for this: the package does what any client in any
// language can do, a CloudEvent in Kafka binary mode, keyed by the webhook's id
// with the partitioner of Kafka's Java client.
//
// It refuses events that could never be delivered (an illegal webhook or event
// id, more bytes than the topic takes) before they are sent. It does not know
// which webhooks exist: an event for one that does not ends as a dead letter.
package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/record"
)

// DefaultTopic is where dispatchers look for events unless topics.prefix says
// otherwise.
const DefaultTopic = "webhooks.events"

// MaxBytes is the most that an event may have, with key and headers, as Kafka
// counts it without compression. It is 1 KiB less than the topic takes.
const MaxBytes = record.MaxNewEventBytes

// Options say where to publish.
type Options struct {
	// Brokers are the brokers to ask first, host:port; the others are learned
	// from them. At least one.
	Brokers []string
	// Topic is the events topic: topics.prefix, then "events". Default:
	// DefaultTopic.
	Topic string
	// Timeout is how long an event may be on its way, where its context ends no
	// sooner: Publish takes at most three seconds longer, in which it finds out
	// whether the event was written. Default: 2 minutes, as delivery.timeout.ms of Java.
	Timeout time.Duration
	// Client is what else the Kafka client needs to reach the brokers: TLS, SASL,
	// a dialer, a logger. What this package promises (acks of all in-sync
	// replicas, partitioner, sizes) can't be changed with it. Default: none.
	Client []kgo.Opt
}

// Producer publishes events. It is safe for concurrent use; one per process is
// enough.
type Producer struct {
	cl      *kgo.Client
	topic   string
	timeout time.Duration
	reach   *reach

	mu     sync.Mutex
	closed bool
	onWay  int           // events
	idle   chan struct{} // closed when none is any more
}

// New makes a Producer. It connects with the first event, not before.
func New(o Options) (*Producer, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("making a producer: no brokers, name at least one as host:port")
	}
	if slices.ContainsFunc(o.Brokers, func(b string) bool { return strings.TrimSpace(b) == "" }) {
		return nil, fmt.Errorf("making a producer: an empty name in the list of brokers %q, each is host:port", o.Brokers)
	}
	if o.Topic == "" {
		o.Topic = DefaultTopic
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("making a producer: a timeout of %s, want more than none", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	p := &Producer{topic: o.Topic, timeout: o.Timeout, reach: &reach{}}
	opts := append([]kgo.Opt{kgo.RetryBackoffFn(backoff)}, o.Client...)
	opts = append(opts,
		kgo.SeedBrokers(o.Brokers...),
		kgo.WithHooks(p.reach),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.RetryTimeoutFn(retryTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()),                   // and idempotent, which is kgo's default
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // murmur2 of the key, as Java's
		// kgo would refuse what the topic takes: its own bound is 1,000,012 bytes.
		kgo.ProducerBatchMaxBytes(record.MaxEventBytes),
		kgo.MaxBufferedRecords(10_000),
		kgo.MaxBufferedBytes(64<<20),
		// Publish waits for each event; events that are published meanwhile still
		// share a request.
		kgo.ProducerLinger(0),
	)
	var err error
	if p.cl, err = kgo.NewClient(opts...); err != nil {
		return nil, fmt.Errorf("making a producer: %w", err)
	}
	return p, nil
}

const defaultTimeout = 2 * time.Minute

// retryTimeout is how long kgo tries a request, of which a new one follows, but for
// events: they have their own time. Only when it gives up asking for the metadata
// does it look at which events have none left, while no broker is reached.
func retryTimeout(key int16) time.Duration {
	if key == kmsg.Metadata.Int16() {
		return time.Second
	}
	return 30 * time.Second
}

// backoff is how long kgo waits before its next try: its own goes up to 2.5 s.
func backoff(try int) time.Duration {
	return min(500*time.Millisecond, 50*time.Millisecond<<min(max(0, try-1), 4))
}

// Close waits for what is on its way, at most Options.Timeout and three seconds, and
// ends the connections. Nothing can be published any more.
func (p *Producer) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.Flush(context.Background()) // whose context never ends
	p.cl.Close()
}
