package producer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/reenvio/reenvio/producer"
)

// broker starts a broker for the examples; yours has an address.
func broker() (addrs []string, stop func()) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(12, producer.DefaultTopic))
	if err != nil {
		panic(err)
	}
	return cluster.ListenAddrs(), cluster.Close
}

func Example() {
	brokers, stop := broker()
	defer stop()

	p, err := producer.New(producer.Options{Brokers: brokers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	published, err := p.Publish(ctx, producer.Event{
		Webhook: "crm-orders", ID: "order-4711-paid", Type: "order.paid", Source: "/orders", Data: []byte(`{"order":4711}`),
	})
	if failure, ok := errors.AsType[*producer.PublishError](err); ok && failure.MaybeWritten {
		fmt.Println("publish it again with the ID", failure.ID)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is in %s, partition %d, offset %d\n", published.ID, published.Topic, published.Partition, published.Offset)
	// Output: order-4711-paid is in webhooks.events, partition 9, offset 0
}

func ExampleProducer_PublishAll() {
	brokers, stop := broker()
	defer stop()
	p, err := producer.New(producer.Options{Brokers: brokers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	results := p.PublishAll(context.Background(), []producer.Event{
		{Webhook: "crm-orders", ID: "order-1-paid", Type: "order.paid"},
		{Webhook: "no webhook id", ID: "order-2-paid", Type: "order.paid"},
		{Webhook: "crm-orders", ID: "order-3-paid", Type: "order.paid"},
	})
	for _, r := range results {
		fmt.Println(r.ID, r.Err == nil)
	}
	fmt.Println(results.Err())
	// Output:
	// order-1-paid true
	// order-2-paid false
	// order-3-paid true
	// publishing event "order-2-paid" to webhook "no webhook id": the event is invalid: webhook id has a byte 0x20 at position 2, want only A-Za-z0-9._:-
}

func ExampleProducer_PublishAsync() {
	brokers, stop := broker()
	defer stop()
	p, err := producer.New(producer.Options{Brokers: brokers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	for _, id := range []string{"order-1-paid", "order-2-paid"} {
		p.PublishAsync(context.Background(), producer.Event{Webhook: "crm-orders", ID: id}, func(published producer.Published, err error) {
			fmt.Println(published.ID, published.Offset, err)
		})
	}
	if err := p.Flush(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	// Output:
	// order-1-paid 0 <nil>
	// order-2-paid 1 <nil>
}
