package producer

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reach is a hook of kgo that remembers why no broker is reached: an event that
// was given up in time has no other reason to tell.
type reach struct {
	mu   sync.Mutex
	addr string
	err  error
}

var _ kgo.HookBrokerConnect = (*reach)(nil)

// OnBrokerConnect is called after each attempt to connect.
func (r *reach) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addr, r.err = net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port)), err
}

// trouble is what to add to an error: empty when the last connection succeeded.
func (r *reach) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return ""
	}
	return "; broker " + r.addr + " can't be reached: " + r.err.Error()
}
