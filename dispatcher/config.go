package dispatcher

import (
	"errors"
	"fmt"
	"time"
)

// Times that hang together. The session timeout is the anchor: a member that
// falls silent is replaced when it has passed, so requests start only in the
// first half of it after a sign of life, and those in flight end with it.
const (
	sessionTimeout     = 10 * time.Second
	heartbeatInterval  = 2 * time.Second
	leaseTime          = sessionTimeout / 2
	transactionTimeout = 30 * time.Second // a broker failover must not kill a healthy dispatcher
	maxDrain           = 45 * time.Second

	// settleTime is what a released number gets for its last cycle, beyond the
	// drain; rebalanceMargin is that and what joining takes.
	settleTime      = 20 * time.Second
	rebalanceMargin = 30 * time.Second

	// Supervisors give a stop 20s beyond the drain: for its last cycle, and for
	// leaving the group (twice) and closing, each of which Kafka may not answer.
	stopSettleTime = 12 * time.Second
	leaveTime      = 3 * time.Second
)

// Config is the dispatcher's part of the configuration.
type Config struct {
	Group          string        `koanf:"group" default:"<topics.prefix>dispatcher" doc:"Consumer group, and the beginning of the transactional ids. The same in all dispatchers of one set of topics, and in no others: two sets in one group leave numbers of both without an owner."`
	Cycle          time.Duration `koanf:"cycle" doc:"How often outcomes are committed. Shorter means fewer requests made again after a crash, and more transactions. 5ms to 5s."`
	DrainTimeout   time.Duration `koanf:"drain_timeout" doc:"How long requests in flight may still run when a number is given up or the process stops; what runs longer is cut, and made again by the next owner. 0s to 45s. Supervisors must wait 20s longer before they kill."`
	MaxInFlight    int           `koanf:"max_in_flight" doc:"Requests in flight at once, over all webhooks; each costs a connection and some memory. 1 to 1000000."`
	MaxPerHost     int           `koanf:"max_per_host" doc:"Requests in flight at once to one host and port, over all its webhooks, which take turns; counted by each dispatcher for itself. 0 to max_in_flight; 0 is no limit."`
	MaxUncommitted time.Duration `koanf:"max_uncommitted" doc:"No request starts while an outcome has waited longer than this to be committed: it bounds what a crash repeats while Kafka is in trouble. 100ms to 30s."`
	LeaveOnStop    bool          `koanf:"leave_on_stop" doc:"Leave the group at a clean stop, so that others take over at once. With false the numbers wait for a restart, at most the session timeout of 10s."`
}

// GroupOf is the group of a set of topics for which the configuration names none.
func GroupOf(prefix string) string { return prefix + "dispatcher" }

// Defaults are the values of the contract. The group is left empty: it follows
// from the topics (GroupOf).
func Defaults() Config {
	return Config{
		Cycle:          100 * time.Millisecond,
		DrainTimeout:   maxDrain,
		MaxInFlight:    4096,
		MaxUncommitted: 2 * time.Second,
		LeaveOnStop:    true,
	}
}

// Validate checks each field; the error names all that are out of bounds.
func (c Config) Validate() error {
	var errs []error
	bound := func(name string, v, low, high time.Duration) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("dispatcher.%s is %v, but must be between %v and %v", name, v, low, high))
		}
	}
	bound("cycle", c.Cycle, 5*time.Millisecond, 5*time.Second)
	bound("drain_timeout", c.DrainTimeout, 0, maxDrain)
	bound("max_uncommitted", c.MaxUncommitted, 100*time.Millisecond, transactionTimeout)
	if c.MaxInFlight < 1 || c.MaxInFlight > 1_000_000 {
		errs = append(errs, fmt.Errorf("dispatcher.max_in_flight is %d, but must be between 1 and 1000000", c.MaxInFlight))
	}
	if c.MaxPerHost < 0 || c.MaxPerHost > c.MaxInFlight {
		errs = append(errs, fmt.Errorf("dispatcher.max_per_host is %d, but must be between 0 (no limit) and dispatcher.max_in_flight, %d", c.MaxPerHost, c.MaxInFlight))
	}
	return errors.Join(errs...)
}
