// Package process holds what every long-running command of reenvio has around its work: the log, the metrics registry, the admin
// server with its health checks, the two stops, and the teardown.
//
// It knows nothing of what the process does and holds nothing global: no default logger, no default registry. So two of everything
// can live in one test.
package process

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// LogConfig is the configuration of the log.
type LogConfig struct {
	Level string `koanf:"level" doc:"The least important log lines written: debug, info, warn or error."`
}

// DefaultLog is the log without configuration.
func DefaultLog() LogConfig { return LogConfig{Level: "info"} }

// Validate refuses a level that slog doesn't know.
func (c LogConfig) Validate() error {
	_, err := c.level()
	return err
}

func (c LogConfig) level() (slog.Level, error) {
	switch c.Level {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log.level: %q is none of debug, info, warn, error", c.Level)
}

// NewLogger writes text where a person is likely to read along, and JSON otherwise.
func NewLogger(w io.Writer, c LogConfig) (*slog.Logger, error) {
	level, err := c.level()
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	if IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}

// IsTerminal says whether a stream (reader or writer) is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
