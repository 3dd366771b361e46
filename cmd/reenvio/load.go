package main

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/config"
)

// loadOwn reads and checks the configuration that a command was given, and nothing else.
func (c *cli) loadOwn(cmd *cobra.Command) (settings, config.Origins, error) {
	return c.loadOver(cmd, defaultSettings(), config.Base{})
}

// loadOver does the same over other defaults and a base.
func (c *cli) loadOver(cmd *cobra.Command, s settings, base config.Base) (settings, config.Origins, error) {
	origins, err := config.Load(&s, config.Sources{
		Base:    base,
		File:    cmp.Or(c.configFile, config.FileFrom(c.environ)),
		Environ: c.environ,
		Flags:   cmd.Flags(),
	})
	s.complete()
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return settings{}, nil, usageError{fmt.Errorf("the configuration can't be used:\n%w", err)}
	}
	return s, origins, nil
}

// load is for the commands of a person. Where no broker is configured, and a `reenvio dev` runs in this directory, its broker is meant:
// what it says of itself is then the weakest source.
func (c *cli) load(cmd *cobra.Command) (settings, config.Origins, error) {
	s, origins, err := c.loadOwn(cmd)
	if err != nil || len(s.Kafka.Brokers) > 0 {
		return s, origins, err
	}
	path := filepath.Join(defaultDataDir, devFileName)
	dev, err := findDev(path)
	if err != nil || dev == nil {
		return s, origins, err
	}
	fmt.Fprintf(c.stderr, "Using the broker of `reenvio dev` (process %d, %s).\n", dev.PID, path)
	return c.loadOver(cmd, defaultSettings(), dev.base(path, s.Secrets.Keyset != ""))
}

// errNoBrokers names both ways to a broker.
var errNoBrokers = usagef("no Kafka broker is configured, and no `reenvio dev` runs in this directory: start one with `make run` (or `reenvio dev`) in a first terminal, or set kafka.brokers (%s)",
	waysTo("kafka.brokers"))

// waysTo names the places where a setting is made.
func waysTo(key string) string {
	return fmt.Sprintf("%s, --%s, or the configuration file", config.Variable(key), key)
}
