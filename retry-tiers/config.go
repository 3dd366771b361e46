// Package retrytiers is the delay line: how long a failed event waits, in which delay topic it does so, when it leaves
// that topic, and the queue in which it waits for that moment.
//
// A tier is a delay topic named after the delay it stands for (retry-2s). Its records are not read "after two seconds":
// each carries the time at which it is due, and leaves then. The tier only groups records that wait about equally long,
// so that none of them holds back the committed offset of its partition for long.
//
// The package has no clock, no random source and no connection to Kafka: what it computes depends on its arguments alone.
// It doesn't decide whether an event is tried again, nor by whom a delay is overruled (Retry-After, a pause).
package retrytiers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reenvio/reenvio/internal/topology"
)

// Config is the configuration under the key retry.
type Config struct {
	Tiers       []string      `koanf:"tiers" doc:"Delays of the delay topics, each a topic. A delay is named one way only: 1m, not 60s. More tiers mean fewer hops of long delays, and more partitions. A tier is added by starting all dispatchers with it; one that is taken away is drained."`
	JitterRatio float64       `koanf:"jitter_ratio" doc:"Largest part of a delay that additive jitter adds to it: 0.1 makes 8s to 8.8s out of 8s. 0 to 1."`
	MaxDelay    time.Duration `koanf:"max_delay" doc:"Where the doubling of delays ends. 500ms to 168h. A webhook's own schedule isn't bound by it."`
}

// Defaults are the values that apply when nothing is configured: four tiers, as many as the delays of five attempts.
func Defaults() Config {
	return Config{Tiers: []string{"2s", "4s", "8s", "16s"}, JitterRatio: 0.1, MaxDelay: time.Hour}
}

// Validate reports everything that is wrong with c, by key and bound.
func (c Config) Validate() error {
	_, err := c.Durations()
	errs := []error{err}
	if !(c.JitterRatio >= 0 && c.JitterRatio <= 1) { // NaN is neither
		errs = append(errs, fmt.Errorf("retry.jitter_ratio is %v: it must be 0 to 1", c.JitterRatio))
	}
	if c.MaxDelay < Floor || c.MaxDelay > Longest {
		errs = append(errs, fmt.Errorf("retry.max_delay is %v: it must be %v to %v", c.MaxDelay, Floor, Longest))
	}
	return errors.Join(errs...)
}

// Durations are the tiers, shortest first.
func (c Config) Durations() ([]time.Duration, error) {
	if len(c.Tiers) == 0 {
		return nil, errors.New("retry.tiers is empty: name at least one tier, such as 2s")
	}
	var errs []error
	var tiers []time.Duration
	for _, name := range c.Tiers {
		tier, err := topology.ParseTier(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("retry.tiers: %w", err))
			continue
		}
		if slices.Contains(tiers, tier) {
			errs = append(errs, fmt.Errorf("retry.tiers names %s twice", name))
		}
		tiers = append(tiers, tier)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.Sort(tiers)
	return tiers, nil
}
