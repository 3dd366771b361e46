package kafka

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func good() Config {
	return Config{Brokers: []string{"127.0.0.1:9092"}, InstanceID: "a-1"}
}

func TestValidateNamesKeyAndBound(t *testing.T) {
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"kafka.brokers is empty: name a broker, such as 127.0.0.1:9092, or start `reenvio dev`": func(c *Config) { c.Brokers = nil },
		`kafka.brokers has "user:pw@host:9092"`:                                                 func(c *Config) { c.Brokers = []string{"user:pw@host:9092"} },
		`kafka.brokers has ":9092"`:                                                             func(c *Config) { c.Brokers = []string{":9092"} },
		`kafka.brokers has "a:0"`:                                                               func(c *Config) { c.Brokers = []string{"a:0"} },
		`kafka.brokers has "a:99999"`:                                                           func(c *Config) { c.Brokers = []string{"a:99999"} },
		`kafka.brokers has "a:b"`:                                                               func(c *Config) { c.Brokers = []string{"a:b"} },
		`kafka.brokers has ""`:                                                                  func(c *Config) { c.Brokers = []string{"a:1", ""} },
		"kafka.instance_id is 0 bytes long: it must have 1 to 64":                               func(c *Config) { c.InstanceID = "" },
		"kafka.instance_id is 65 bytes long":                                                    func(c *Config) { c.InstanceID = strings.Repeat("a", 65) },
		`kafka.instance_id is "a/b"`:                                                            func(c *Config) { c.InstanceID = "a/b" },
		`kafka.instance_id is ".."`:                                                             func(c *Config) { c.InstanceID = ".." },
		"kafka.tls.enabled is false":                                                            func(c *Config) { c.TLS.CAFile = "ca.pem" },
		"kafka.tls.cert_file and kafka.tls.key_file belong together":                            func(c *Config) { c.TLS = TLSConfig{Enabled: true, CertFile: "c.pem"} },
		`kafka.sasl.mechanism is "GSSAPI": it must be one of PLAIN, SCRAM-`:                     func(c *Config) { c.SASL = SASLConfig{"GSSAPI", "u", "f"} },
		`kafka.sasl.mechanism is "": it must be one of`:                                         func(c *Config) { c.SASL = SASLConfig{"", "u", ""} },
		"kafka.sasl.username is empty: SCRAM-SHA-512 needs one":                                 func(c *Config) { c.SASL = SASLConfig{"SCRAM-SHA-512", "", "f"} },
		"kafka.sasl.password_file is empty: OAUTHBEARER needs a file with the":                  func(c *Config) { c.SASL = SASLConfig{"OAUTHBEARER", "", ""} },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := Options(c, discard); err == nil {
			t.Errorf("Options accepts what Validate refuses: %q", want)
		}
	}
}

func TestDefaultInstanceIsTheHost(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := DefaultConfig(); got.InstanceID != host || got.Brokers != nil {
		t.Errorf("got %+v", got)
	}
}

func TestBackoffIsShortAndNeverNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		try := rapid.IntRange(0, 1_000_000).Draw(t, "try")
		if d := backoff(try); d < 40*time.Millisecond || d > maxBackoff || try >= 5 && d < 400*time.Millisecond {
			t.Fatalf("backoff(%d) = %v", try, d)
		}
	})
}
