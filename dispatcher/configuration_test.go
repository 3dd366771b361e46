package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

// A configuration that can't be used pauses its webhook, and no other; mended, the
// webhook goes on by itself, with what was parked first.
func TestUnusableConfiguration(t *testing.T) {
	other := otherKeys(t)
	for name, value := range map[string]func(w *world, e record.Endpoint) []byte{
		"no JSON":            func(*world, record.Endpoint) []byte { return []byte("{") },
		"in clear":           func(_ *world, e record.Endpoint) []byte { return e.Marshal() },
		"another's id":       func(w *world, e record.Endpoint) []byte { e.ID = "other"; return w.sealed(e) },
		"not decryptable":    func(_ *world, e record.Endpoint) []byte { _ = other.SealEndpoint(&e); return e.Marshal() },
		"unknown ordering":   func(w *world, e record.Endpoint) []byte { e.Ordering = "sideways"; return w.sealed(e) },
		"no URL":             func(w *world, e record.Endpoint) []byte { e.URL = ""; return w.sealed(e) },
		"a secret of no use": func(w *world, e record.Endpoint) []byte { e.Secrets[0].Value = "whsec_x"; return w.sealed(e) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
				w.produce(&kgo.Record{Topic: w.topo.Endpoints(), Key: []byte("bad"), Value: value(w, w.endpoint("bad"))})
				w.webhook("good")
				a := w.start("a")
				a.owns(0)
				w.send("bad", 0, 3)
				w.send("good", 0, 3)
				w.until("the good ones are delivered", func() bool { return len(w.delivered("good")) == 3 })
				w.until("the bad ones are parked", func() bool { return len(w.parked("bad")) == 3 })
				a.quiesce()
				if s := w.state("bad"); !s.HasPause(record.PauseConfig) || len(s.PauseReasons) != 1 {
					t.Errorf("state %s", s.Marshal())
				}
				for _, d := range w.parked("bad") {
					if d.Parked != record.ParkConfig {
						t.Errorf("%s is parked as %s", d.ID, d.Parked)
					}
				}
				// A person can't lift what the configuration says.
				if r := w.do("bad", record.ActionResume); r.Result != record.ResultDone || !strings.Contains(r.Detail, "still paused, by its configuration: config") {
					t.Errorf("resume: %+v", r)
				}
				time.Sleep(time.Minute)
				w.counts("bad", 0, 0, 0)

				w.webhookUnread("bad")
				w.until("all are delivered", func() bool { return len(w.delivered("bad")) == 3 })
				w.send("bad", 3, 1)
				w.until("the next is delivered", func() bool { return len(w.delivered("bad")) == 4 })
				mustEqual(t, "sent", ids(w.receiver.Of("bad")), eventIDs("bad", 0, 4))
				a.quiesce()
				if s := w.state("bad"); !s.Healthy() {
					t.Errorf("state %s", s.Marshal())
				}
			})
		})
	}
}

// otherKeys is a keyset that no webhook of a world is written with.
func otherKeys(t *testing.T) *secrets.Keyset {
	t.Helper()
	path := t.TempDir() + "/other.json"
	if err := secrets.Generate(path); err != nil {
		t.Fatal(err)
	}
	keys, err := secrets.Load(secrets.Config{KeysetFile: path})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (w *world) sealed(e record.Endpoint) []byte {
	w.t.Helper()
	if err := w.keys.SealEndpoint(&e); err != nil {
		w.t.Fatal(err)
	}
	return e.Marshal()
}

// enabled: false pauses, true resumes; a pause by a person stays its own.
func TestDisabledWebhook(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		enable := func(on bool) { w.change("w", func(e *record.Endpoint) { e.Enabled = &on }) }
		reasons := func(want ...record.PauseReason) {
			t.Helper()
			a.quiesce()
			if got := w.state("w").PauseReasons; len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
				t.Errorf("paused because of %v, want %v", got, want)
			}
		}
		enable(false)
		w.send("w", 0, 2)
		w.until("both are parked", func() bool { return len(w.parked("w")) == 2 })
		reasons(record.PauseDisabled)
		if r := w.do("w", record.ActionResume); !strings.Contains(r.Detail, "still paused, by its configuration: disabled") {
			t.Errorf("resume: %+v", r)
		}
		reasons(record.PauseDisabled)
		w.do("w", record.ActionPause)
		reasons(record.PauseDisabled, record.PauseManual)
		enable(true)
		time.Sleep(time.Second)
		reasons(record.PauseManual)
		w.counts("w", 0, 0, 0)
		w.do("w", record.ActionResume)
		w.until("both are delivered", func() bool { return len(w.delivered("w")) == 2 })
		reasons()
	})
}

// A changed configuration works within a second, without a restart: also for what is queued already.
func TestChangedConfiguration(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("w")
		a := w.start("a")
		a.owns(0)
		w.send("w", 0, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 1 })
		w.change("w", func(e *record.Endpoint) { e.URL = w.receiver.URL("elsewhere") })
		time.Sleep(time.Second)
		w.send("w", 1, 1)
		w.until("it is delivered", func() bool { return len(w.delivered("w")) == 2 })
		mustEqual(t, "sent to the new URL", ids(w.receiver.Of("elsewhere")), eventIDs("w", 1, 1))
	})
}
