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
// and will be delivered, or end as a dead letter that says why. Nothing but a
// Kafka client is needed for this: the package does what any client in any
// language can do, a CloudEvent in Kafka binary mode, keyed by the webhook's id
// with the partitioner of Kafka's Java client.
//
// It refuses events that could never be delivered (an illegal webhook or event
// id, more bytes than the topic takes) before they are sent. It does not know
// which webhooks exist: an event for one that does not ends as a dead letter.
package producer

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
)

// DefaultTopic is where dispatchers look for events unless topics.prefix says
// otherwise.
const DefaultTopic = "webhooks.events"

// Options say where to publish.
type Options struct {
	// Brokers are the brokers to ask first, host:port; the others are learned
	// from them. At least one.
	Brokers []string
	// Topic is the events topic: topics.prefix, then "events". Default:
	// DefaultTopic.
	Topic string
	// Client is what else the Kafka client needs to reach the brokers: TLS, SASL,
	// a dialer, a logger. What this package promises (acks of all in-sync
	// replicas, partitioner, sizes) can't be changed with it. Default: none.
	Client []kgo.Opt
}

// Producer publishes events. It is safe for concurrent use; one per process is
// enough.
type Producer struct {
	cl    *kgo.Client
	topic string
}

// New makes a Producer. It connects with the first event, not before.
func New(o Options) (*Producer, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("making a producer: no brokers, name at least one as host:port")
	}
	if o.Topic == "" {
		o.Topic = DefaultTopic
	}
	opts := append(append([]kgo.Opt{}, o.Client...),
		kgo.SeedBrokers(o.Brokers...),
		kgo.RequiredAcks(kgo.AllISRAcks()),                   // and idempotent, which is kgo's default
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // murmur2 of the key, as Java's
		// kgo would refuse what the topic takes: its own bound is 1,000,012 bytes.
		kgo.ProducerBatchMaxBytes(record.MaxEventBytes),
		// Publish waits for each event; events that are published meanwhile still
		// share a request.
		kgo.ProducerLinger(0),
	)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making a producer: %w", err)
	}
	return &Producer{cl: cl, topic: o.Topic}, nil
}

// Close ends the connections. A Publish that is still running fails.
func (p *Producer) Close() { p.cl.Close() }
