package dispatcher

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dials remembers the last broker that could not be reached. The Kafka client tries
// again in silence for a minute, and until then nobody else could say what is wrong.
type dials struct {
	mu     sync.Mutex
	err    error
	failed time.Time
}

// OnBrokerConnect is kgo's hook.
func (d *dials) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		return
	}
	if refused, ok := errors.AsType[*net.OpError](err); ok { // without the client's own story around it
		err = refused
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.failed = err, time.Now()
}

// trouble is why a broker could not be reached just now.
func (d *dials) trouble(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.failed) >= leaseTime { // the client tries each half second at least
		return nil
	}
	return d.err
}
