package dlqconsumer

import "github.com/reenvio/reenvio/internal/process"

// Config is the configuration under the key dlq.
type Config struct {
	Listen string `koanf:"listen" doc:"Address of the page that reenvio dev serves. The page has no authentication: dev refuses an address that is not loopback."`
}

// Defaults is the configuration without any.
func Defaults() Config { return Config{Listen: "127.0.0.1:7090"} }

// Validate refuses what can't be listened on.
func (c Config) Validate() error {
	return process.ValidListen("dlq.listen", c.Listen, Defaults().Listen)
}
