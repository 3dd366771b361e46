package main

import (
	"cmp"
	"errors"
	"time"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	retrytiers "github.com/reenvio/reenvio/retry-tiers"

	"github.com/reenvio/reenvio/dispatcher"
	"github.com/reenvio/reenvio/dispatcher/delivery"
	"github.com/reenvio/reenvio/internal/kafka"
	"github.com/reenvio/reenvio/internal/process"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
	"github.com/reenvio/reenvio/internal/topology"
)

// settings is the whole configuration: a section for each package that has one.
type settings struct {
	Kafka      kafka.Config        `koanf:"kafka"`
	Topics     topology.Config     `koanf:"topics"`
	Retry      retrytiers.Config   `koanf:"retry"`
	Dispatcher dispatcher.Config   `koanf:"dispatcher"`
	Attempts   dispatcher.Attempts `koanf:"attempts"`
	Dedup      dedupConfig         `koanf:"dedup"`
	Egress     delivery.Egress     `koanf:"egress"`
	Secrets    secrets.Config      `koanf:"secrets"`
	Metrics    metricsConfig       `koanf:"metrics"`
	Admin      process.AdminConfig `koanf:"admin"`
	DLQ        dlqconsumer.Config  `koanf:"dlq"`
	Log        process.LogConfig   `koanf:"log"`
}

type dedupConfig struct {
	Window time.Duration `koanf:"window" doc:"How long a second copy of a delivered event (its id, to the same webhook) is taken for a duplicate, and not delivered again; 0 is never. The retention of the topic delivered must be at least twice as long."`
}

type metricsConfig struct {
	EventTypes []string `koanf:"event_types" doc:"Event types that metrics name, at most 50; all others are counted together as other."`
}

func defaultSettings() settings {
	return settings{
		Kafka:      kafka.DefaultConfig(),
		Topics:     topology.DefaultConfig(),
		Retry:      retrytiers.Defaults(),
		Dispatcher: dispatcher.Defaults(),
		Attempts:   dispatcher.DefaultAttempts(),
		Dedup:      dedupConfig{Window: 10 * time.Minute},
		Admin:      process.DefaultAdmin(),
		Secrets:    secrets.DefaultConfig(),
		DLQ:        dlqconsumer.Defaults(),
		Log:        process.DefaultLog(),
	}
}

// complete fills in what follows from other settings.
func (s *settings) complete() {
	s.Dispatcher.Group = cmp.Or(s.Dispatcher.Group, dispatcher.GroupOf(s.Topics.Prefix))
}

// validate checks what a type can't say, in every section, and across them what only the whole can tell.
func (s *settings) validate() error {
	var topics error
	if _, err := s.Retry.Durations(); err == nil { // else the section says what is wrong with them
		_, topics = s.topology()
	}
	return errors.Join(s.validateKafka(), topics, s.Retry.Validate(), s.Dispatcher.Validate(), s.Attempts.Validate(), s.Egress.Validate(),
		s.Secrets.Validate(), s.Admin.Validate(), s.DLQ.Validate(), s.Log.Validate(), dispatcher.ValidEventTypes(s.Metrics.EventTypes))
}

// validateKafka leaves it to the command whether it needs brokers: dev brings its own, and config must show what is wrong.
func (s *settings) validateKafka() error {
	k := s.Kafka
	if len(k.Brokers) == 0 {
		k.Brokers = []string{"any:9092"}
	}
	return k.Validate()
}

// topology is the set of topics that follows from the settings.
func (s *settings) topology() (*topology.Topology, error) {
	tiers, err := s.Retry.Durations()
	if err != nil {
		return nil, err
	}
	return topology.New(s.Topics, tiers, s.Dedup.Window)
}

// policy is what an endpoint is checked against.
func (s *settings) policy() (record.Policy, error) {
	tiers, err := s.Retry.Durations()
	return record.Policy{Tiers: tiers, MaxDelay: s.Retry.MaxDelay, AllowHTTP: s.Egress.AllowHTTP}, err
}
