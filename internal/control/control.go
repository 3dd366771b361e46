// Package control is the way in for people: it reads and writes the
// configuration of webhooks, reads their state, and has commands done by the
// dispatcher that owns them. Command line, admin API and console all come
// through here.
//
// Kafka is the only store, so every answer is read from the topics, up to their
// end as it was when the question came. The package keeps no copy and runs
// nothing in the background.
//
// It refuses to change what it does not own: a webhook's state belongs to the
// owner of its partition number and is changed by a command only; a webhook's
// configuration is written by compare-and-swap, so that of two people who edit
// it one is told.
package control

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

// Control is safe for concurrent use.
type Control struct {
	cl     *kgo.Client
	opts   func() []kgo.Opt
	topo   *topology.Topology
	keys   *secrets.Keyset
	writes []chan struct{} // by partition number: held by the one who writes, so that we don't fence ourselves
}

// New makes a Control that reads and sends commands with cl, a client without
// group and transactional id. For each write of an endpoint it makes a
// transactional client from opts, which gives the options to reach the cluster.
// keys seals what is written; a Control that only reads may have none.
func New(cl *kgo.Client, opts func() []kgo.Opt, topo *topology.Topology, keys *secrets.Keyset) *Control {
	c := &Control{cl: cl, opts: opts, topo: topo, keys: keys, writes: make([]chan struct{}, topo.Partitions())}
	for p := range c.writes {
		c.writes[p] = make(chan struct{}, 1)
	}
	return c
}

// produce is ProduceSync that ends with ctx: kgo holds on to a record that may
// have reached the broker for as long as it takes to know. When ctx has ended it
// may have been written or not.
func produce(ctx context.Context, cl *kgo.Client, r *kgo.Record) error {
	done := make(chan error, 1)
	cl.Produce(ctx, r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
