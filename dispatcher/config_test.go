package dispatcher

import (
	"strings"
	"testing"
	"time"
)

func TestConfigBounds(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, c := range map[string]struct {
		key    string // as a person knows it; empty: it is allowed
		change func(*Config)
	}{
		"cycle 0":                {"dispatcher.cycle", func(c *Config) { c.Cycle = 0 }},
		"cycle 4ms":              {"dispatcher.cycle", func(c *Config) { c.Cycle = 4 * time.Millisecond }},
		"cycle 5ms":              {"", func(c *Config) { c.Cycle = 5 * time.Millisecond }},
		"cycle 5s":               {"", func(c *Config) { c.Cycle = 5 * time.Second }},
		"cycle 6s":               {"dispatcher.cycle", func(c *Config) { c.Cycle = 6 * time.Second }},
		"drain -1s":              {"dispatcher.drain_timeout", func(c *Config) { c.DrainTimeout = -time.Second }},
		"drain 0":                {"", func(c *Config) { c.DrainTimeout = 0 }},
		"drain 45s":              {"", func(c *Config) { c.DrainTimeout = 45 * time.Second }},
		"drain 46s":              {"dispatcher.drain_timeout", func(c *Config) { c.DrainTimeout = 46 * time.Second }},
		"uncommitted 99ms":       {"dispatcher.max_uncommitted", func(c *Config) { c.MaxUncommitted = 99 * time.Millisecond }},
		"uncommitted 100ms":      {"", func(c *Config) { c.MaxUncommitted = 100 * time.Millisecond }},
		"uncommitted 31s":        {"dispatcher.max_uncommitted", func(c *Config) { c.MaxUncommitted = 31 * time.Second }},
		"none in flight":         {"dispatcher.max_in_flight", func(c *Config) { c.MaxInFlight = 0 }},
		"one in flight":          {"", func(c *Config) { c.MaxInFlight = 1 }},
		"too many in flight":     {"dispatcher.max_in_flight", func(c *Config) { c.MaxInFlight = 1_000_001 }},
		"a million in flight":    {"", func(c *Config) { c.MaxInFlight = 1_000_000 }},
		"no limit per host":      {"", func(c *Config) { c.MaxPerHost = 0 }},
		"all to one host":        {"", func(c *Config) { c.MaxPerHost = c.MaxInFlight }},
		"more than all":          {"dispatcher.max_per_host", func(c *Config) { c.MaxPerHost = c.MaxInFlight + 1 }},
		"less than none":         {"dispatcher.max_per_host", func(c *Config) { c.MaxPerHost = -1 }},
		"negative number at all": {"dispatcher.max_in_flight", func(c *Config) { c.MaxInFlight = -1 }},
	} {
		cfg := Defaults()
		c.change(&cfg)
		err := cfg.Validate()
		if c.key == "" && err != nil || c.key != "" && (err == nil || !strings.Contains(err.Error(), c.key)) {
			t.Errorf("%s: %v, want an error about %q", name, err, c.key)
		}
	}
}

// One look shows all that is wrong.
func TestConfigNamesAll(t *testing.T) {
	err := Config{DrainTimeout: time.Hour}.Validate()
	if err == nil {
		t.Fatal("an empty configuration is accepted")
	}
	for _, key := range []string{"cycle", "drain_timeout", "max_uncommitted", "max_in_flight"} {
		if !strings.Contains(err.Error(), "dispatcher."+key+" is") {
			t.Errorf("%v: it does not name dispatcher.%s", err, key)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		change func(*Options)
	}{
		"no keyset":                  {"secrets.keyset_file", func(o *Options) { o.Keys = nil }},
		"a bad configuration":        {"dispatcher.cycle", func(o *Options) { o.Config.Cycle = 0 }},
		"a bad choice of successes":  {"attempts.successes", func(o *Options) { o.Attempts.Successes = "some" }},
		"no broker":                  {"kafka.brokers", func(o *Options) { o.Kafka.Brokers = nil }},
		"a bad tier":                 {"60s", func(o *Options) { o.Retry.Tiers = []string{"60s"} }},
		"a bad egress rule":          {"egress", func(o *Options) { o.Egress.Allow = []string{"10.0.0.0/99"} }},
		"51 event types for metrics": {"metrics.event_types", func(o *Options) { o.EventTypes = make([]string, 51) }},
	} {
		o := testOptions(t)
		c.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error about %q", name, err, c.want)
		}
	}
}
