package dispatcher

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

// A dispatcher with another keyset says so before any event comes: once in its log, and as long as it is so when
// asked whether it is ready. One with the right keyset takes over, and all go on by themselves.
func TestAnotherKeyset(t *testing.T) {
	other := otherKeys(t)
	inWorld(t, 3, kafkatest.Always(200), func(t *testing.T, w *world) {
		names := w.onEach(3)
		e := w.endpoint(names[0])
		if err := w.keys.SealEndpoint(&e); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint(secrets.KeyIDs(e)[0])

		var log logbook
		wrong := w.start("wrong", func(o *Options) { o.Keys, o.Log = other, slog.New(slog.NewTextHandler(&log, nil)) })
		wrong.owns(0, 1, 2)
		wrong.quiesce()
		says(t, "ready", wrong.d.Ready(), "the keyset lacks keys", "secrets.keyset_file", "webhooks: 3", "["+id+"]")
		says(t, "live", wrong.d.Live())
		told := log.lines("the keyset lacks keys")
		if len(told) != 1 || !strings.Contains(told[0], "level=ERROR") || !strings.Contains(told[0], "webhooks=1") || !strings.Contains(told[0], id) {
			t.Errorf("the log has %q, want one error", told)
		}
		// What comes and goes while it runs counts too.
		w.delete(names[1])
		w.delete(names[2])
		w.until("two are gone", func() bool {
			return slices.ContainsFunc(wrong.d.Ready(), func(r string) bool { return strings.Contains(r, "webhooks: 1") })
		})
		w.send(names[0], 0, 1)
		w.until("it is paused", func() bool { s := w.state(names[0]); return s.HasPause(record.PauseConfig) })
		if s := w.state(names[0]); !secrets.OtherKeyset(s.LastError) {
			t.Errorf("the state does not tell: %s", s.LastError)
		}
		wrong.stop()
		if err := wrong.wait(); err != nil {
			t.Fatal(err)
		}

		right := w.start("right")
		right.owns(0, 1, 2)
		w.until("it is delivered", func() bool { return len(w.delivered(names[0])) == 1 })
		right.quiesce()
		says(t, "ready", right.d.Ready())
	})
}

// One webhook that was written with a key that nobody has; written again, it is well.
func TestAWebhookOfAnotherKeyset(t *testing.T) {
	other := otherKeys(t)
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		w.webhook("good")
		a := w.start("a")
		a.owns(0)
		a.quiesce()
		says(t, "ready", a.d.Ready())
		keys := w.keys
		w.keys = other
		w.webhookUnread("bad")
		w.keys = keys
		w.until("it is noticed", func() bool { return len(a.d.Ready()) > 0 })
		says(t, "ready", a.d.Ready(), "webhooks: 1")
		w.webhookUnread("bad")
		w.until("it is well", func() bool { return len(a.d.Ready()) == 0 })
	})
}

// The last line says how it ended.
func TestTheLastLine(t *testing.T) {
	inWorld(t, 1, kafkatest.Always(200), func(t *testing.T, w *world) {
		var log, second logbook
		older := w.startQuietly("a", func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		older.owns(0)
		younger := w.start("a")
		if older.wait() == nil {
			t.Error("the older one ended without an error")
		}
		younger.owns(0)
		if lines := log.lines("dispatcher stopped"); len(lines) != 1 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[0], "kafka.instance_id") {
			t.Errorf("got %q", lines)
		}
		younger.stop()
		if err := younger.wait(); err != nil {
			t.Fatal(err)
		}
		well := w.start("b", func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&second, nil)) })
		well.owns(0)
		time.Sleep(time.Second)
		well.stop()
		if err := well.wait(); err != nil {
			t.Fatal(err)
		}
		if lines := second.lines("dispatcher stopped"); len(lines) != 1 || !strings.Contains(lines[0], "level=INFO") || strings.Contains(lines[0], "error") {
			t.Errorf("got %q", lines)
		}
	})
}
