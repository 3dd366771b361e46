package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/signing"
	"github.com/reenvio/reenvio/internal/topology"
)

// body is what every event carries, about half a kilobyte.
var body = fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("x", 500))

// endpointRecord is what `webhooks create` would write.
func endpointRecord(topo *topology.Topology, keys *secrets.Keyset, id, url string) (*kgo.Record, error) {
	now := record.At(time.Now())
	e := record.Endpoint{
		ID: id, Tenant: "bench", URL: url, CreatedAt: now, UpdatedAt: now, UpdatedBy: "bench",
		Secrets: []record.Secret{{Value: signing.NewSecret(), CreatedAt: now}},
	}
	if err := keys.SealEndpoint(&e); err != nil {
		return nil, err
	}
	return &kgo.Record{Topic: topo.Endpoints(), Partition: topo.PartitionFor(id), Key: []byte(id), Value: e.Marshal()}, nil
}

func event(webhook, id string) record.Event {
	return record.Event{Webhook: webhook, ID: id, Type: "bench.event", CESource: "/bench", ContentType: "application/json", Value: body}
}

func eventRecord(topo *topology.Topology, webhook, id string) (*kgo.Record, error) {
	return record.NewEventRecord(topo.Events(), topo.PartitionFor(webhook), event(webhook, id))
}

// parkedRecord is what the dispatcher writes when an event meets a paused webhook.
func parkedRecord(topo *topology.Topology, webhook, id string, offset int64, at time.Time) *kgo.Record {
	p := topo.PartitionFor(webhook)
	d := record.Delivery{
		Event: event(webhook, id), Key: []byte(webhook), ProducedAt: record.At(at),
		Source: record.Source{Topic: topo.Events(), Partition: p, Offset: offset},
	}
	return d.ParkedRecord(topo.Parked(), p, record.ParkPaused)
}

// pausedState is that of a webhook whose last ten attempts have failed.
func pausedState(topo *topology.Topology, webhook string, parked record.Parked, at time.Time) *kgo.Record {
	s := record.State{
		Webhook: webhook, ConsecutiveFailures: record.DefaultAutoPauseAfter,
		StreakStartedAt: record.At(at.Add(-time.Hour)), PausedAt: record.At(at),
		LastError: "refused: connection refused",
		Parked:    &parked, Version: record.NextVersion(0, at),
	}
	s.AddPause(record.PauseFailures)
	return &kgo.Record{Topic: topo.State(), Partition: topo.PartitionFor(webhook), Key: []byte(webhook), Value: s.Marshal()}
}
