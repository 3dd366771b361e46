package kafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// levelTrace is for what kgo says of every single request.
const levelTrace = slog.LevelDebug - 4

// logger passes on what kgo has to say. Its Info is about the normal life of a client (joined, sent, moved) and is our Debug: what an operator must
// know of it, the stages say themselves. kgo logs no credentials and no record contents.
type logger struct{ log *slog.Logger }

var levels = []struct {
	kgo  kgo.LogLevel
	slog slog.Level
}{
	{kgo.LogLevelDebug, levelTrace},
	{kgo.LogLevelInfo, slog.LevelDebug},
	{kgo.LogLevelWarn, slog.LevelWarn},
	{kgo.LogLevelError, slog.LevelError},
}

// Level is asked before each message, so that messages nobody wants are never put together.
func (l logger) Level() kgo.LogLevel {
	for _, level := range levels {
		if l.log.Enabled(context.Background(), level.slog) {
			return level.kgo
		}
	}
	return kgo.LogLevelNone
}

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	for _, known := range levels {
		if known.kgo == level {
			//nolint:sloglint // the messages are kgo's, a fixed text each
			l.log.Log(context.Background(), known.slog, msg, append([]any{"component", "kafka"}, keyvals...)...)
		}
	}
}
