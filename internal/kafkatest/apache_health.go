package kafkatest

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// healthPoll is how often a starting cluster is asked.
const healthPoll = 200 * time.Millisecond

// awaitHealthy returns when every broker that runs says itself that it knows all
// the others, and that all replicas are in sync: only then can the next one be
// killed without a partition stopping. A broker that was killed a moment ago may
// not be missed yet, so no one is believed about another. It fails at once when
// a broker ended by itself.
func (a *apache) awaitHealthy(ctx context.Context) error {
	var up []*node
	for _, n := range a.nodes {
		if n.runs() {
			up = append(up, n)
		}
	}
	for {
		why := ""
		for _, n := range up {
			if err := n.failed(); err != nil {
				return err
			}
			if why = n.sick(ctx, len(up)); why != "" {
				break
			}
		}
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the brokers: %s: %w", why, ctx.Err())
		case <-time.After(healthPoll):
		}
	}
}

// sick is what this broker finds wrong with the cluster; nothing when all is well.
func (n *node) sick(ctx context.Context, brokers int) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(n.addr()))
	if err != nil {
		return err.Error()
	}
	defer cl.Close()
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, cl.SeedBrokers()[0])
	if err != nil {
		return fmt.Sprintf("broker %d: %v", n.id, err)
	}
	if len(meta.Brokers) != brokers {
		return fmt.Sprintf("broker %d knows %d of %d", n.id, len(meta.Brokers), brokers)
	}
	for _, topic := range meta.Topics {
		for _, p := range topic.Partitions {
			if p.Leader < 0 || len(p.ISR) < min(len(p.Replicas), brokers) {
				return fmt.Sprintf("of partition %d of %s %d of %d replicas are in sync", p.Partition, *topic.Topic, len(p.ISR), len(p.Replicas))
			}
		}
	}
	return ""
}
