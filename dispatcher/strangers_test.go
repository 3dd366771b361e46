package dispatcher

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// logbook is a log to read.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) lines(with string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A second set of topics has a group of its own by default: each is owned whole. In one group the leader says what is wrong.
func TestTwoSetsOfTopics(t *testing.T) {
	for name, shared := range map[string]bool{"a group each": false, "one group": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, kafkatest.Always(200), func(t *testing.T, w *world) {
				var log logbook
				start := func(w *world, instance string) *process {
					return w.start(instance, func(o *Options) {
						o.Log = slog.New(slog.NewTextHandler(&log, nil))
						if shared {
							o.Config.Group = "webhooks.dispatcher"
						}
					})
				}
				a := start(w, "a")
				a.owns(0, 1)
				grown := *w
				grown.topo = w.cluster.Topology(t, 4)
				w.cluster.CreateTopics(t, grown.topo)
				b := start(&grown, "b")
				time.Sleep(time.Minute)
				told := log.lines("another set of topics")
				if !shared {
					b.owns(0, 1, 2, 3)
					a.owns(0, 1)
					if len(told) > 0 {
						t.Errorf("it is told that %s", told[0])
					}
					return
				}
				if len(told) == 0 || !strings.Contains(told[0], w.topo.Prefix()) || !strings.Contains(told[0], grown.topo.Prefix()) || !strings.Contains(told[0], "level=ERROR") {
					t.Errorf("the log has %q, want an error with both prefixes", told)
				}
			})
		})
	}
}
