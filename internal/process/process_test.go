package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var quiet = slog.New(slog.DiscardHandler)

func TestLogIsJSONWhereNoTerminalIs(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, LogConfig{Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("unimportant")
	log.Warn("important", "n", 3)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "important" || line["n"] != 3.0 {
		t.Errorf("got %q (%v)", out.String(), err)
	}
}

func TestLogLevelsAreChecked(t *testing.T) {
	for _, level := range []string{"debug", "info", "warn", "error"} {
		if err := (LogConfig{Level: level}).Validate(); err != nil {
			t.Error(err)
		}
	}
	if err := (LogConfig{Level: "loud"}).Validate(); err == nil || !strings.Contains(err.Error(), `log.level: "loud"`) {
		t.Errorf("got %v", err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAdminShowsMetricsAndReasons(t *testing.T) {
	registry := NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "reenvio_things_total", Help: "Things."})
	registry.MustRegister(counter)
	counter.Add(7)
	var sick atomic.Bool
	reasons := func() []string {
		if sick.Load() {
			return []string{"number 3 is stuck", "lease lost"}
		}
		return nil
	}
	admin, err := StartAdmin(AdminConfig{Listen: "127.0.0.1:0"}, AdminOptions{Registry: registry, Ready: []Probe{reasons}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + admin.Addr()
	if status, body := get(t, base+"/metrics"); status != 200 || !strings.Contains(body, "reenvio_things_total 7") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("/metrics: %d\n%s", status, body)
	}
	if status, body := get(t, base+"/readyz"); status != 200 || strings.TrimSpace(body) != `{"status":"ok"}` {
		t.Errorf("/readyz: %d %s", status, body)
	}
	sick.Store(true)
	if status, body := get(t, base+"/readyz"); status != 503 || strings.TrimSpace(body) != `{"status":"failing","reasons":["lease lost","number 3 is stuck"]}` {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if status, _ := get(t, base+"/livez"); status != 200 {
		t.Errorf("/livez: %d: what is not ready is alive all the same", status)
	}
	sick.Store(false)
	admin.Draining()
	if status, body := get(t, base+"/readyz"); status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("/readyz while draining: %d %s", status, body)
	}
	if _, err := StartAdmin(AdminConfig{Listen: admin.Addr()}, AdminOptions{Registry: registry, Log: quiet}); err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "admin.listen") {
		t.Errorf("a second server on one port: %v", err)
	}
	if err := admin.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := StartAdmin(AdminConfig{Listen: admin.Addr()}, AdminOptions{Registry: registry, Log: quiet})
	if err != nil {
		t.Fatalf("Stop must free the port: %v", err)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAdminAddressIsChecked(t *testing.T) {
	if err := (AdminConfig{Listen: "7070"}).Validate(); err == nil || !strings.Contains(err.Error(), `admin.listen: "7070"`) {
		t.Errorf("got %v", err)
	}
	if err := DefaultAdmin().Validate(); err != nil {
		t.Error(err)
	}
}

func TestFirstSignalIsSoftSecondIsHard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		soft, cancel := context.WithCancel(t.Context())
		hard := make(chan os.Signal, 1)
		go Stops(t.Context(), signals, cancel, func(s os.Signal) { hard <- s })
		signals <- syscall.SIGTERM
		synctest.Wait()
		if soft.Err() == nil || len(hard) != 0 {
			t.Fatalf("after one signal: soft %v, hard %d", soft.Err(), len(hard))
		}
		signals <- os.Interrupt
		synctest.Wait()
		if len(hard) != 1 || <-hard != os.Interrupt {
			t.Error("the second signal must end the process")
		}
	})
}

func TestTeardownRunsBackwardsAndThroughFailures(t *testing.T) {
	var order []string
	var teardown Teardown
	for _, name := range []string{"first", "second", "third"} {
		teardown.Add(name, func(context.Context) error {
			order = append(order, name)
			if name == "second" {
				return errors.New("broken")
			}
			return nil
		})
	}
	err := teardown.Run(t.Context(), quiet)
	if !slices.Equal(order, []string{"third", "second", "first"}) {
		t.Errorf("order %v", order)
	}
	if err == nil || err.Error() != "stopping the second: broken" {
		t.Errorf("got %v", err)
	}
	if err := teardown.Run(t.Context(), quiet); err != nil || len(order) != 3 {
		t.Error("a second run must do nothing")
	}
}

func TestTeardownLeavesAStuckStepBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		freed := false
		var teardown Teardown
		teardown.Add("socket", func(ctx context.Context) error { freed = ctx.Err() != nil; return nil })
		teardown.Add("endless", func(context.Context) error { <-release; return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		err := teardown.Run(ctx, quiet)
		if took := time.Since(began); took != 20*time.Second+grace {
			t.Errorf("took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "stopping the endless") || !freed {
			t.Errorf("err %v, freed %v", err, freed)
		}
	})
}
