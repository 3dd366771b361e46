package dispatcher

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
)

// clientMetrics count what one Kafka client does on the network. A dispatcher has
// several clients, and a registry takes each name once: the label tells them
// apart. What is registered when a client is made is taken back when it is closed,
// so that the transactional one can be made anew.
func (m *metrics) clientMetrics(client string) kgo.Hook {
	return kprom.NewMetrics(namespace,
		kprom.Subsystem("kafka"), // reenvio_kafka_read_bytes_total and so on
		kprom.Registerer(m.registry),
		kprom.WithStaticLabel(prometheus.Labels{"client": client}),
	)
}
