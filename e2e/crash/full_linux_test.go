package crash_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reenvio/reenvio/e2e/procs"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// TestFullDisks: a broker of Apache Kafka ends when its disk is full. One costs nothing
// but the time until the others lead. Without any of them requests stop, and readiness
// and the command line say why. When there is room and the brokers are started again,
// all goes on by itself: nothing is lost, and no request made again.
func TestFullDisks(t *testing.T) {
	if !kafkatest.OnApache() {
		t.Skip("the embedded broker has no disk here")
	}
	if os.Getenv(ownMounts) == "" {
		t.Parallel() // most of it is waiting for brokers
		withOwnMounts(t)
		return
	}
	var disks []disk
	var dirs []string
	for range 3 {
		d := mountDisk(t)
		disks, dirs = append(disks, d), append(dirs, string(d))
	}
	w := &world{World: procs.New(t, kafkatest.Apache(t, kafkatest.Disks(dirs...)), 6, failSome, limit)}
	w.Admin = map[string]string{"a": kafkatest.FreeAddress(t), "b": kafkatest.FreeAddress(t)}
	stop := w.mixed()
	defer stop()
	w.Start("a")
	w.Start("b")
	before := w.Membership("a", "b")
	w.delivering(before, time.Time{})
	w.Until("waiting for the pause of down", func() (bool, error) {
		s, _, err := w.Control.GetState(w.Ctx, "down")
		return s.Status == record.Paused, err
	})

	i := w.coordinator()
	full := time.Now()
	disks[i].fill(t)
	w.Cluster.AwaitBrokerEnd(w.Ctx, t, i)
	ended := time.Now()
	w.delivering(before, ended)
	t.Logf("broker %d, the group's coordinator, ended %s after its disk was full; each number has delivered and committed since, %s later", i, ended.Sub(full), time.Since(ended))
	disks[i].tidy(t)
	w.Cluster.StartBroker(t, i)
	w.delivering(before, time.Now())

	full = time.Now()
	for _, d := range disks {
		d.fill(t)
	}
	for i := range disks {
		w.Cluster.AwaitBrokerEnd(w.Ctx, t, i)
	}
	ended = time.Now()
	t.Logf("all brokers ended %s after their disks were full", ended.Sub(full))
	w.saysWhy("a", "b")
	w.Pause(time.Until(ended.Add(6 * time.Second))) // retries come due
	back := time.Now()
	w.silent(ended, back)
	for _, d := range disks {
		d.tidy(t)
	}
	w.Cluster.StartBrokers(t, 0, 1, 2)
	w.delivering(before, back)
	t.Logf("each number has delivered and committed again %s after the brokers were started", time.Since(back))
	for instance := range before.Members {
		w.Until("waiting for dispatcher "+instance+" to be ready", func() (bool, error) {
			reasons, err := w.Reasons(instance)
			return len(reasons) == 0, err
		})
	}
	if n := w.Logged("number lost") + w.Logged("requests cut"); n > 0 {
		t.Errorf("numbers were lost, or requests cut, %d times", n)
	}
	w.heal([]string{"down"})
	stop()
	w.finish()
}

// mixed is traffic of all kinds: what is delivered, fails at first, in strict order too,
// or is paused.
func (w *world) mixed() (stop func()) {
	w.T.Helper()
	webhooks := w.WebhookOfEach()
	w.Receiver.Answer("down", kafkatest.Always(http.StatusInternalServerError))
	w.Webhook("down", func(*record.Endpoint) {})
	w.Webhook("strict", func(e *record.Endpoint) {
		procs.NeverPauses(e)
		e.Ordering = record.OrderStrict
	})
	stopMost := w.Stream(100*time.Millisecond, append(webhooks, "down"))
	stopStrict := w.Stream(3*time.Second, []string{"strict"}) // a failed one holds up the rest
	return func() { stopMost(); stopStrict() }
}

// saysWhy returns when the dispatchers' readiness has said what keeps them from working;
// who asks on the command line is told too.
func (w *world) saysWhy(instances ...string) {
	w.T.Helper()
	for _, instance := range instances {
		var reasons []string
		w.Until("waiting for dispatcher "+instance+" to say why it is not ready", func() (ok bool, err error) {
			if reasons, err = w.Reasons(instance); err != nil {
				return false, err
			}
			if !says(reasons, "outcomes could not be committed for") || !says(reasons, "a Kafka broker can't be reached: dial tcp") {
				return false, fmt.Errorf("it says %q", reasons)
			}
			return true, nil
		})
		w.T.Logf("/readyz of %s: %q", instance, reasons)
	}
	out, err := w.Command("status")
	w.T.Logf("reenvio status: %v: %s", err, out)
	if err == nil || !strings.Contains(out, "no Kafka broker at") || !strings.Contains(out, "connection refused") {
		w.T.Errorf("without a broker, reenvio status ends with %v, and says %s", err, out)
	}
}

func says(reasons []string, text string) bool {
	return slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, text) })
}
