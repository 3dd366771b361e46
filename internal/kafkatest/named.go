package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokersVariable names brokers that run already.
const brokersVariable = "REENVIO_TEST_BROKERS"

// namedCluster is a cluster that somebody else started on this machine. What it
// advertises must be on this machine too: tests create and flood topics.
func namedCluster(ctx context.Context, list string) (*Cluster, error) {
	c := &Cluster{Brokers: strings.Split(list, ",")}
	for i, addr := range c.Brokers {
		c.Brokers[i] = strings.TrimSpace(addr)
		if err := loopback(c.Brokers[i]); err != nil {
			return nil, err
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	meta, err := kadm.NewClient(cl).BrokerMetadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its brokers: %w", list, err)
	}
	c.Brokers = nil
	for _, b := range meta.Brokers {
		addr := net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
		if err := loopback(addr); err != nil {
			return nil, fmt.Errorf("broker %d advertises another machine: %w", b.NodeID, err)
		}
		c.Brokers = append(c.Brokers, addr)
	}
	return c, nil
}

// loopback refuses an address that is not this machine's own.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("broker %q: want host:port: %w", addr, err)
	}
	if host == "localhost" {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return fmt.Errorf("broker %q: %w", addr, errNotLoopback)
	}
	return nil
}

var errNotLoopback = errors.New("tests use brokers on 127.0.0.0/8 or [::1] only")
