package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// levelTrace is for what kgo says of every single request.
const levelTrace = slog.LevelDebug - 4

// logger passes on what kgo has to say. Its Info is about the normal life of a client (joined, sent, moved) and is our Debug: what an operator must
// know of it, the stages say themselves. kgo logs no credentials and no record contents.
type logger struct {
	log     *slog.Logger
	repeats *repeats
}

func newLogger(log *slog.Logger) logger {
	return logger{log: log, repeats: &repeats{said: map[string]*repeat{}}}
}

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
		if known.kgo != level {
			continue
		}
		attrs := append([]any{"component", "kafka"}, keyvals...)
		if known.slog >= slog.LevelWarn {
			again, left := l.repeats.say(time.Now(), known.slog.String()+msg+addressOf(keyvals))
			if again {
				return
			}
			if left > 0 {
				attrs = append(attrs, "left_out", left)
			}
		}
		//nolint:sloglint // the messages are kgo's, a fixed text each
		l.log.Log(context.Background(), known.slog, msg, attrs...)
	}
}

// addressOf is which broker a message is about.
func addressOf(keyvals []any) string {
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "addr" {
			return fmt.Sprint(keyvals[i+1])
		}
	}
	return ""
}

// quietFor is how long the same warning about the same broker is left out. While no broker can be reached a dispatcher dials about 60 times a
// second, and warned of each: 3,858 lines in a minute.
const quietFor = 30 * time.Second

// repeats knows what was said when. What it knows of is bounded: kgo's texts are fixed, and brokers are few.
type repeats struct {
	mu   sync.Mutex
	said map[string]*repeat
}

type repeat struct {
	at   time.Time
	left int // out since
}

// say notes that something is to be said. again: it was said a moment ago, so it is left out. Else left is how often it was left out before.
func (r *repeats) say(now time.Time, what string) (again bool, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.said[what]
	if last != nil && now.Sub(last.at) < quietFor {
		last.left++
		return true, 0
	}
	if last != nil {
		left = last.left
	}
	r.said[what] = &repeat{at: now}
	return false, left
}
