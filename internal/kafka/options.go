package kafka

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kgo gives up a request, and with it the membership in a group, long before the brokers would: after 1 to 10 s of refused dials. These let it
// survive the restart or loss of a broker (8 to 12 s until Kafka has named a new leader).
const (
	retryTimeout   = time.Minute
	requestRetries = 1000 // never the limit; retryTimeout is
	minBackoff     = 50 * time.Millisecond
	maxBackoff     = 500 * time.Millisecond
)

// metadataMinAge: kgo answers some errors of a producer by waiting for its next look at the metadata, among them the CONCURRENT_TRANSACTIONS with
// which Apache Kafka may meet a record soon after the end of a transaction. By default that look is up to 5 s away.
const metadataMinAge = 100 * time.Millisecond

// metadataMaxAge is how long a client dials a broker that is gone for good. Some requests (OffsetFetch among them) go to the coordinator that is
// cached until the metadata no longer has its broker, and a client that only asks has no other reason to look at the metadata: by default 5 minutes.
const metadataMaxAge = 5 * time.Second

// Options are the client options that every client of this process has. Append what is special to one after them.
// The files of TLS and SASL are read here once, so that a missing one is told at the start and not at the first connection.
func Options(c Config, log *slog.Logger) ([]kgo.Opt, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	dial, err := c.dialer()
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID("reenvio-" + c.InstanceID),
		kgo.WithLogger(newLogger(log)),
		kgo.Dialer(dial),
		kgo.RetryTimeout(retryTimeout),
		kgo.RetryBackoffFn(backoff),
		kgo.RequestRetries(requestRetries),
		kgo.DisableClientMetrics(), // KIP-714 would push this client's figures to the brokers; ours are on the admin port
		kgo.MetadataMinAge(metadataMinAge),
		kgo.MetadataMaxAge(metadataMaxAge),
	}
	if c.SASL.Mechanism != "" {
		mechanism, err := c.SASL.mechanism()
		if err != nil {
			return nil, fmt.Errorf("preparing kafka.sasl: %w", err)
		}
		opts = append(opts, kgo.SASL(mechanism))
		if !c.TLS.Enabled && (c.SASL.Mechanism == mechPlain || c.SASL.Mechanism == mechOAuth) {
			log.Warn("credentials go to the brokers in clear: set kafka.tls.enabled", "mechanism", c.SASL.Mechanism)
		}
	}
	return opts, nil
}

// backoff before the given try (1, 2, ...): doubling, capped, and spread by a fifth so that the clients of one process don't move as one.
func backoff(try int) time.Duration {
	d := maxBackoff
	if try < 5 { // 50, 100, 200, 400 ms
		d = minBackoff << max(0, try-1)
	}
	return d - time.Duration(rand.Int64N(int64(d/5)))
}
