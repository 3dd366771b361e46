package dlqconsumer

import (
	"fmt"
	"net"
)

// Config is the configuration under the key dlq.
type Config struct {
	Listen string `koanf:"listen" doc:"Address of the page that reenvio dev serves. The page has no authentication: dev refuses an address that is not loopback."`
}

// Defaults is the configuration without any.
func Defaults() Config { return Config{Listen: "127.0.0.1:7090"} }

// Validate refuses what is no host and port.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("dlq.listen: %q is no host:port, such as 127.0.0.1:7090", c.Listen)
	}
	return nil
}
