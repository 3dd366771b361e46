package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/reenvio/reenvio/internal/record"
)

// screen is standard output that a test can wait on.
type screen struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

// await returns when a line has all parts.
func (s *screen) await(t *testing.T, ended <-chan int, parts ...string) string {
	t.Helper()
	for {
		s.mu.Lock()
		text, changed := s.text.String(), s.changed
		s.mu.Unlock()
	lines:
		for line := range strings.Lines(text) {
			for _, part := range parts {
				if !strings.Contains(line, part) {
					continue lines
				}
			}
			return line
		}
		select {
		case <-changed:
		case code := <-ended:
			t.Fatalf("it ended with %d before a line had %q:\n%s", code, parts, text)
		case <-t.Context().Done():
			t.Fatalf("no line has %q:\n%s", parts, text)
		}
	}
}

// devRun is a `reenvio dev` in this process, on free ports.
type devRun struct {
	*screen
	errors *screen
	stop   context.CancelFunc
	ended  chan int
}

var freePorts = []string{"--broker-port=0", "--receiver-port=0", "--admin.listen=127.0.0.1:0", "--dlq.listen=127.0.0.1:0", "--topics.partitions=3"}

func startDev(t *testing.T, s *shell, args ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &devRun{screen: newScreen(), errors: newScreen(), stop: stop, ended: make(chan int, 1)}
	c := &cli{stdin: strings.NewReader(""), stdout: d.screen, stderr: d.errors, environ: s.environ}
	go func() { d.ended <- run(ctx, c, append(append([]string{"dev"}, freePorts...), args...)) }()
	t.Cleanup(stop)
	return d
}

func (d *devRun) end(t *testing.T) {
	t.Helper()
	d.stop()
	if code := <-d.ended; code != exitOK {
		t.Fatalf("dev ended with %d\n%s\n%s", code, &d.text, &d.errors.text)
	}
	if got := d.text.String(); !strings.Contains(got, "Stopped.") {
		t.Errorf("it doesn't say that it has stopped:\n%s", got)
	}
}

func TestDevGoesOnWhereItStopped(t *testing.T) {
	s := newShell(t)
	d := startDev(t, s)
	d.await(t, d.ended, "demo-ok", "delivered", "attempt 1")
	d.await(t, d.ended, "demo-down", "failed", "attempt 1", "demo-down-1", "500", "retry due")
	flaky := d.await(t, d.ended, "demo-flaky", "failed", "attempt 1", "503", "retry due")
	event := strings.Fields(flaky)[5]

	// In a second terminal, in the same directory:
	list := s.run(t, "webhooks", "list").wantCode(t, exitOK).wantOut(t, demoOK, demoFlaky, demoDown).wantErr(t, "Using the broker of `reenvio dev`", fmt.Sprint(os.Getpid()))
	if strings.Contains(list.out, "paused") {
		t.Errorf("nothing is paused yet:\n%s", list.out)
	}
	s.run(t, "topics", "plan").wantCode(t, exitOK)
	s.run(t, "webhooks", "pause", demoOK).wantCode(t, exitOK).wantOut(t, "done")
	d.await(t, d.ended, demoOK, "paused", "manual", "Resume it:")
	d.await(t, d.ended, "                 ", "webhooks resume demo-ok")
	s.run(t, "send", "--webhook", demoOK, "--id", "parked-1", "--data", "{}").wantCode(t, exitOK)
	d.await(t, d.ended, demoOK, "parked", "paused", "parked-1")
	s.run(t, "webhooks", "create", "--id", "mine", "--url", "http://127.0.0.1:9/").wantCode(t, exitOK)
	s.run(t, "dev").wantCode(t, exitFailed).wantErr(t, "in use by another `reenvio dev`", fmt.Sprint(os.Getpid()))
	d.end(t)
	s.run(t, "webhooks", "list").wantCode(t, exitUsage).wantErr(t, "make run")

	// The receiver has another port now, and the flaky event still waits for its next attempts.
	d = startDev(t, s)
	d.await(t, d.ended, demoOK, "is paused, as it was")
	s.run(t, "webhooks", "resume", demoOK).wantCode(t, exitOK)
	d.await(t, d.ended, demoOK, "delivered", "parked-1")
	d.await(t, d.ended, demoFlaky, "delivered", "attempt 3", event)
	if n := len(downIDs(events(t, withBroker(t, s), 3*2+2+2+1))); n != 2 {
		t.Errorf("demo-down got %d events in two starts", n)
	}
	d.wantMetrics(t, contractMetrics)
	d.end(t)
}

// withBroker is a shell whose first setting names the broker of the `reenvio dev` that runs here.
func withBroker(t *testing.T, s *shell) *shell {
	t.Helper()
	file, err := findDev(".reenvio/dev.json")
	if err != nil || file == nil {
		t.Fatalf("dev.json: %v, %v", file, err)
	}
	return &shell{environ: append([]string{"REENVIO_KAFKA__BROKERS=" + file.Brokers[0]}, s.environ...)}
}

func TestAKeysetOfOnesOwnReplacesThatOfDev(t *testing.T) {
	file := &devFile{Brokers: []string{"a:1", "b:2"}, Prefix: "x.", KeysetFile: "/dev/keyset", Settings: map[string]string{"topics.partitions": "3"}}
	if got := file.base("p", false).Values; got["secrets.keyset_file"] != "/dev/keyset" || got["kafka.brokers"] != "a:1,b:2" || got["topics.prefix"] != "x." || got["topics.partitions"] != "3" {
		t.Errorf("got %v", got)
	}
	if got, there := file.base("p", true).Values["secrets.keyset_file"]; there {
		t.Errorf("got %v: both would be set, which is refused", got)
	}
}

func downIDs(all []*record.Delivery) []string {
	var ids []string
	for _, d := range all {
		if d.Webhook == demoDown {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

func TestDevRefusesWhatCannotWork(t *testing.T) {
	s := newShell(t)
	s.run(t, "dev", "--kafka.brokers=kafka:9092").wantCode(t, exitUsage).wantErr(t, "brings its own broker", "flag --kafka.brokers", "reenvio dispatcher")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := fmt.Sprint(portOf(taken.Addr().String()))
	for flag, want := range map[string]string{"--broker-port=" + port: "--broker-port", "--receiver-port=" + port: "--receiver-port", "--admin.listen=127.0.0.1:" + port: "admin.listen", "--dlq.listen=127.0.0.1:" + port: "dlq.listen"} {
		s.run(t, append(append([]string{"dev"}, freePorts...), flag)...).wantCode(t, exitFailed).wantErr(t, port, "in use", want)
	}
	// What was started before the failure is down again: the directory is free, and no dev.json lies there.
	dir, err := openDataDir(defaultDataDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.file(devFileName)); !os.IsNotExist(err) {
		t.Errorf("dev.json: %v", err)
	}
	if err := dir.release(); err != nil {
		t.Error(err)
	}
}

func TestDevFileOfADeadProcessIsIgnored(t *testing.T) {
	s := newShell(t)
	if err := os.Mkdir(defaultDataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := &devFile{PID: 1 << 30, Brokers: []string{"127.0.0.1:1"}, Prefix: "webhooks."} // beyond the highest pid there can be
	if err := file.write(defaultDataDir); err != nil {
		t.Fatal(err)
	}
	s.run(t, "webhooks", "list").wantCode(t, exitUsage).wantErr(t, "no `reenvio dev` runs in this directory")
	file.PID = os.Getpid()
	if err := file.write(defaultDataDir); err != nil {
		t.Fatal(err)
	}
	s.run(t, "webhooks", "list").wantCode(t, exitFailed).wantErr(t, "Using the broker", "127.0.0.1:1")
	// Whatever a person sets is stronger.
	s.run(t, "webhooks", "list", "--kafka.brokers=127.0.0.1:2").wantCode(t, exitFailed).wantErr(t, "127.0.0.1:2")
}
