package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// What other writers put beyond the bounds pauses the webhook, says so in its state, and kills no event.
func TestConfigurationOutOfBounds(t *testing.T) {
	for field, change := range map[string]func(*record.Endpoint){
		"timeout":          func(e *record.Endpoint) { e.Timeout = record.Duration(-5 * time.Second) },
		"max_attempts":     func(e *record.Endpoint) { e.MaxAttempts = -5 },
		"auto_pause_after": func(e *record.Endpoint) { less := -1; e.AutoPauseAfter = &less },
		"schedule":         func(e *record.Endpoint) { e.Schedule = []record.Duration{record.Duration(time.Millisecond)} },
		"jitter":           func(e *record.Endpoint) { e.Jitter = "weird" },
		"retry_on":         func(e *record.Endpoint) { e.RetryOn = "weird" },
		"max_in_flight":    func(e *record.Endpoint) { e.MaxInFlight = 8 },
	} {
		t.Run(field, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				a := w.start("a")
				a.owns(0)
				w.webhook("w", change)
				w.send("w", 0, 2)
				w.until("both are parked", func() bool { return len(w.parked("w")) == 2 })
				a.quiesce()
				if s := w.state("w"); !s.HasPause(record.PauseConfig) || !strings.HasPrefix(s.LastError, record.ConfigError) || !strings.Contains(s.LastError, field) {
					t.Errorf("state %s, want the reason with %s in it", s.Marshal(), field)
				}
				w.counts("w", 0, 0, 0)
				w.webhookUnread("w")
				w.until("both are delivered", func() bool { return len(w.delivered("w")) == 2 })
				a.quiesce()
				if s := w.state("w"); !s.Healthy() || s.LastError != "" {
					t.Errorf("mended, the state is %s", s.Marshal())
				}
			})
		})
	}
}

// More hops than the CLI lets through, and http where it is forbidden, depend on the settings of this process: no pause.
func TestWhatSettingsForbidIsNoConfigurationError(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w", func(e *record.Endpoint) { e.MaxAttempts = 50 })
		a := w.start("a", func(o *Options) { o.Egress.AllowHTTP = false })
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it is tried", func() bool { return len(w.attempts("w")) == 1 })
		if got := w.attempts("w")[0]; !strings.HasPrefix(got.Error, "url_blocked") || w.state("w").Status != record.Active {
			t.Errorf("attempt %+v, state %+v", got, w.state("w"))
		}
	})
}

// The newest reason is in the state, and what a request that was on its way came to does not take its place.
func TestConfigurationErrorsInTheState(t *testing.T) {
	inWorld(t, 1, func(*kafkatest.Request) kafkatest.Response {
		return kafkatest.Response{Status: 500, Delay: 20 * time.Second}
	}, func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it is on its way", func() bool { return len(w.receiver.Of("w")) == 1 })
		says := func(want string) {
			t.Helper()
			w.until("the state says "+want, func() bool {
				s := w.state("w")
				return s.HasPause(record.PauseConfig) && strings.Contains(s.LastError, want)
			})
		}
		put := func(value string) {
			w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Key: []byte("w"), Value: []byte(value)})
		}
		put(`{"id":"w","url":`)
		says("unexpected end of JSON")
		put(`{"id":"v"}`)
		says(`its id is "v"`)
		if len(w.attempts("w")) > 0 {
			t.Error("the second reason waited for the request to end")
		}
		w.until("the request has ended", func() bool { return len(w.attempts("w")) == 1 })
		says(`its id is "v"`)
	})
}

// A webhook that was disabled while nobody owned its number is paused on record too, before any event comes.
func TestDisabledWhileAway(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		no, yes := false, true
		w.webhook("off", func(e *record.Endpoint) { e.Enabled = &no })
		w.webhook("on", func(e *record.Endpoint) { e.Enabled = &yes })
		w.webhook("plain")
		w.webhook("gone", func(e *record.Endpoint) { e.Enabled = &no })
		w.delete("gone")
		a := w.start("a")
		a.owns(0)
		w.until("it is paused on record", func() bool { return w.pausedBy("off", record.PauseDisabled) })
		a.quiesce()
		for _, id := range []string{"on", "plain", "gone"} {
			if s := w.state(id); s.Status == record.Paused {
				t.Errorf("%s: %s", id, s.Marshal())
			}
		}
		if paused := a.metric("webhooks_paused"); paused != 1 {
			t.Errorf("%v are paused", paused)
		}
		a.look(0, func(n *number) {
			if n.endpoints.entries["plain"].opened != unopened {
				t.Error("a webhook with nothing to do was decrypted")
			}
		})
	})
}

// With attempts.response_excerpts off, what endpoints answer is nowhere.
func TestResponseExcerpts(t *testing.T) {
	answer := func(*kafkatest.Request) kafkatest.Response {
		return kafkatest.Response{Status: 500, Body: []byte("no such order")}
	}
	for _, kept := range []bool{true, false} {
		inWorld(t, 1, answer, func(t *testing.T, w *world) {
			w.webhook("w", func(e *record.Endpoint) { e.MaxAttempts = 1 })
			a := w.start("a", func(o *Options) { o.Attempts.ResponseExcerpts = kept })
			a.owns(0)
			w.send("w", 0, 1)
			w.until("it is dead", func() bool { return len(w.dead()) == 1 })
			want := ""
			if kept {
				want = "no such order"
			}
			if a, d := w.attempts("w")[0], w.dead()[0]; a.ResponseExcerpt != want || d.Response != want {
				t.Errorf("kept %t: the attempt has %q, the dead letter %q", kept, a.ResponseExcerpt, d.Response)
			}
		})
	}
}
