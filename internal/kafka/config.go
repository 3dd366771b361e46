// Package kafka makes franz-go clients from Reenvio's configuration, and reads single partitions without one: to the end, exactly, in the caller's
// own time.
//
// It puts no interface around the client. What a stage does with its client (groups, transactions) is the stage's own; here is only what all of them
// need to reach the brokers and survive their absence.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Config is the configuration under the key kafka.
type Config struct {
	Brokers    []string   `koanf:"brokers" doc:"Brokers to ask first, host:port, comma separated; the others are learned from them. Without a port, 9092."`
	InstanceID string     `koanf:"instance_id" doc:"Name of this process among its kind, the same after a restart: two at once with one name stop each other. 1 to 64 bytes of A-Za-z0-9._-." default:"the host name"`
	TLS        TLSConfig  `koanf:"tls"`
	SASL       SASLConfig `koanf:"sasl"`

	// Dial replaces the network, for tests and for a broker in the same process. TLS is spoken over it all the same.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) `koanf:"-"`
}

// TLSConfig is the configuration under kafka.tls.
type TLSConfig struct {
	Enabled  bool   `koanf:"enabled" doc:"Speak TLS (1.2 or newer) with the brokers."`
	CAFile   string `koanf:"ca_file" doc:"PEM file of the authorities that may vouch for a broker, instead of the system's."`
	CertFile string `koanf:"cert_file" doc:"PEM file of this client's certificate, for brokers that ask for one. Needs key_file."`
	KeyFile  string `koanf:"key_file" doc:"PEM file of the certificate's private key."`
}

// SASLConfig is the configuration under kafka.sasl.
type SASLConfig struct {
	Mechanism    string `koanf:"mechanism" doc:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty: no authentication."`
	Username     string `koanf:"username" doc:"User of PLAIN and SCRAM."`
	PasswordFile string `koanf:"password_file" doc:"File with the password, or with the token for OAUTHBEARER. It is read again for each connection, so that it can be replaced while the process runs."`
}

// DefaultConfig is what applies when nothing is configured. It names no broker: there is no good guess.
func DefaultConfig() Config {
	host, _ := os.Hostname() // Validate asks for kafka.instance_id when there is none
	return Config{InstanceID: host}
}

const maxInstanceID = 64 // it goes into offset metadata and transactional ids beside much else

// Validate reports everything that is wrong with c, by key and bound. It opens no file.
func (c Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("kafka.brokers is empty: name a broker, such as 127.0.0.1:9092, or start `reenvio dev` in this directory"))
	}
	for _, broker := range c.Brokers {
		if !validBroker(broker) {
			errs = append(errs, fmt.Errorf("kafka.brokers has %q: it must be host:port", broker))
		}
	}
	if c.InstanceID == "" || len(c.InstanceID) > maxInstanceID {
		errs = append(errs, fmt.Errorf("kafka.instance_id is %d bytes long: it must have 1 to %d", len(c.InstanceID), maxInstanceID))
	} else if strings.Trim(c.InstanceID, ".") == "" || strings.ContainsFunc(c.InstanceID, notInstanceRune) {
		errs = append(errs, fmt.Errorf("kafka.instance_id is %q: it may have A-Za-z0-9._- only, and not be just dots", c.InstanceID))
	}
	return errors.Join(append(errs, c.TLS.validate(), c.SASL.validate())...)
}

func validBroker(broker string) bool {
	host, port, err := net.SplitHostPort(broker)
	if err != nil { // without a port
		host, port = broker, "9092"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && host != "" && !strings.ContainsAny(host, " \t/@")
}

// notInstanceRune: Kafka admits in a group.instance.id what it admits in a topic's name.
func notInstanceRune(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

func (c TLSConfig) validate() error {
	switch {
	case !c.Enabled && c != TLSConfig{}:
		return errors.New("kafka.tls has files but kafka.tls.enabled is false: set it, or take the files away")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("kafka.tls.cert_file and kafka.tls.key_file belong together: set both or none")
	}
	return nil
}

// The mechanisms, by their registered names.
const (
	mechPlain  = "PLAIN"
	mechSHA256 = "SCRAM-SHA-256"
	mechSHA512 = "SCRAM-SHA-512"
	mechOAuth  = "OAUTHBEARER"
)

var mechanisms = []string{mechPlain, mechSHA256, mechSHA512, mechOAuth}

func (c SASLConfig) validate() error {
	switch {
	case c == SASLConfig{}:
		return nil
	case !slices.Contains(mechanisms, c.Mechanism):
		return fmt.Errorf("kafka.sasl.mechanism is %q: it must be one of %s", c.Mechanism, strings.Join(mechanisms, ", "))
	case c.PasswordFile == "":
		return fmt.Errorf("kafka.sasl.password_file is empty: %s needs a file with the password (OAUTHBEARER: the token)", c.Mechanism)
	case c.Username == "" && c.Mechanism != mechOAuth:
		return fmt.Errorf("kafka.sasl.username is empty: %s needs one", c.Mechanism)
	}
	return nil
}
