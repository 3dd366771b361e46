package kafka

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// While a broker is away a client says so at each dial, many times a second.
func TestTheSameWarningIsWrittenNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		wrote := func() string {
			defer out.Reset()
			return out.String()
		}
		refused := func(addr string) {
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", addr, "err", "refused")
		}
		refused("a:1")
		if got := wrote(); !strings.Contains(got, "addr=a:1") || strings.Contains(got, "left_out") {
			t.Errorf("the first: %q", got)
		}
		for range 10 {
			refused("a:1")
		}
		if got := wrote(); got != "" {
			t.Errorf("the same a moment later: %q", got)
		}
		refused("b:2")
		l.Log(kgo.LogLevelWarn, "another warning", "addr", "a:1")
		if got := wrote(); !strings.Contains(got, "addr=b:2") || !strings.Contains(got, "another warning") {
			t.Errorf("another broker, another warning: %q", got)
		}
		time.Sleep(quietFor)
		refused("a:1")
		if got := wrote(); !strings.Contains(got, "left_out=10") {
			t.Errorf("the same after %s: %q", quietFor, got)
		}
		// Who debugs wants all of it.
		for range 2 {
			l.Log(kgo.LogLevelInfo, "joined")
		}
		if got := wrote(); strings.Count(got, "joined") != 2 {
			t.Errorf("below a warning: %q", got)
		}
	})
}
