package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// process is one life of a dispatcher process.
type process struct {
	w        *world
	instance string
	cmd      *exec.Cmd
	started  time.Time
	log      string        // its file
	ended    chan struct{} // closed when it has been waited for

	mu     sync.Mutex
	wanted bool // somebody asked for its end
}

// start starts a dispatcher process. One that ends by itself ends the test.
func (w *world) start(instance string) *process {
	w.t.Helper()
	w.lives++
	p := &process{
		w: w, instance: instance, started: time.Now(), ended: make(chan struct{}),
		log: filepath.Join(w.dir, fmt.Sprintf("%02d-%s.log", w.lives, instance)),
	}
	log, err := os.Create(p.log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, "dispatcher")
	p.cmd.Dir = w.dir // no reenvio.yaml, no data of `reenvio dev`
	p.cmd.Env = append(os.Environ(), w.environ(instance)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := kafkatest.StartChild(p.cmd); err != nil {
		w.t.Fatalf("starting dispatcher %s: %v", instance, err)
	}
	w.processes = append(w.processes, p)
	go func() {
		_ = p.cmd.Wait()
		if !p.isWanted() {
			w.fail(fmt.Errorf("dispatcher %s (process %d) ended by itself: %s", instance, p.cmd.Process.Pid, p.cmd.ProcessState))
		}
		close(p.ended)
	}()
	return p
}

func (w *world) environ(instance string) []string {
	set := map[string]string{
		"KAFKA__BROKERS":       strings.Join(w.cluster.Brokers, ","),
		"KAFKA__INSTANCE_ID":   instance,
		"TOPICS__PREFIX":       w.topo.Prefix(),
		"TOPICS__PARTITIONS":   fmt.Sprint(w.topo.Partitions()),
		"DISPATCHER__GROUP":    w.group,
		"EGRESS__ALLOW":        "127.0.0.0/8",
		"EGRESS__ALLOW_HTTP":   "true",
		"SECRETS__KEYSET_FILE": w.keysetFile,
		"ADMIN__LISTEN":        "127.0.0.1:0",
	}
	var environ []string
	for name, value := range set {
		environ = append(environ, "REENVIO_"+name+"="+value)
	}
	return environ
}

func (p *process) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// signal sends a signal to this process and no other: it has not been waited for.
func (p *process) signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// end sends a signal that ends the process, and waits until it is gone.
func (p *process) end(sig os.Signal) {
	p.mu.Lock()
	p.wanted = true
	p.mu.Unlock()
	if err := p.signal(sig); err != nil {
		p.w.t.Errorf("ending dispatcher %s: %v", p.instance, err)
	}
	<-p.ended
}

// kill ends the process as kill -9 does. It tells the history, and returns when
// it was.
func (p *process) kill() time.Time {
	from := time.Now()
	p.end(syscall.SIGKILL)
	p.w.crashed(p, from, time.Now())
	return from
}

// stop ends the process as a supervisor does; it must say goodbye properly.
func (p *process) stop() {
	late := time.AfterFunc(time.Minute, func() {
		p.w.t.Errorf("dispatcher %s has not stopped within a minute of SIGTERM", p.instance)
		_ = p.signal(syscall.SIGKILL)
	})
	defer late.Stop()
	p.end(syscall.SIGTERM)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.w.t.Errorf("dispatcher %s exited with %d after SIGTERM", p.instance, code)
	}
}

// lines are what the process has logged, but for those of single attempts.
func (p *process) lines() []string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for line := range bytes.Lines(data) {
		if message(line) != "attempt" {
			lines = append(lines, string(bytes.TrimSpace(line)))
		}
	}
	return lines
}

// message is the msg of a line of the log; empty when it is none.
func message(line []byte) string {
	var entry struct {
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(line, &entry) // a panic is no JSON, and so has no msg
	return entry.Msg
}

// logged counts the lines with a message, over all processes.
func (w *world) logged(msg string) int {
	n := 0
	for _, p := range w.processes {
		for _, line := range p.lines() {
			if message([]byte(line)) == msg {
				n++
			}
		}
	}
	return n
}

// tell shows the end of every process's log, and whether a transaction hangs.
func (w *world) tell() {
	const shown = 25
	for _, p := range w.processes {
		lines := p.lines()
		lines = lines[max(0, len(lines)-shown):]
		w.t.Logf("--- dispatcher %s, process %d\n%s", p.instance, p.cmd.Process.Pid, strings.Join(lines, "\n"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	transactions, err := kadm.NewClient(w.client).DescribeTransactions(ctx, w.transactionalID("a"), w.transactionalID("b"))
	w.t.Logf("--- transactions: %+v %v", transactions, err)
}
