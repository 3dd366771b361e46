package procs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// Process is one life of a dispatcher process.
type Process struct {
	Instance string
	Started  time.Time

	w     *World
	cmd   *exec.Cmd
	log   string        // its file
	ended chan struct{} // closed when it has been waited for

	mu     sync.Mutex
	wanted bool // somebody asked for its end
}

// Start starts a dispatcher process. One that ends by itself ends the test, unless
// OnEnd has been set.
func (w *World) Start(instance string) *Process {
	w.T.Helper()
	w.mu.Lock()
	w.lives++
	life := w.lives
	w.mu.Unlock()
	p := &Process{
		w: w, Instance: instance, Started: time.Now(), ended: make(chan struct{}),
		log: filepath.Join(w.dir, fmt.Sprintf("%03d-%s.log", life, instance)),
	}
	log, err := os.Create(p.log)
	if err != nil {
		w.T.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, "dispatcher")
	p.cmd.Dir = w.dir // no reenvio.yaml, no data of `reenvio dev`
	p.cmd.Env = append(os.Environ(), w.environ(instance)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := kafkatest.StartChild(p.cmd); err != nil {
		w.T.Fatalf("starting dispatcher %s: %v", instance, err)
	}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	go func() {
		_ = p.cmd.Wait()
		if !p.Wanted() {
			w.OnEnd(p, p.cmd.ProcessState.String())
		}
		close(p.ended)
	}()
	return p
}

func (w *World) environ(instance string) []string {
	brokers := w.Cluster.Brokers
	if path := w.Cluster.Paths[instance]; path != nil {
		brokers = nil
		for _, hop := range path {
			brokers = append(brokers, hop.Advertised)
		}
	}
	set := map[string]string{
		"KAFKA__BROKERS":       strings.Join(brokers, ","),
		"KAFKA__INSTANCE_ID":   instance,
		"TOPICS__PREFIX":       w.Topo.Prefix(),
		"TOPICS__PARTITIONS":   fmt.Sprint(w.Topo.Partitions()),
		"DISPATCHER__GROUP":    w.Group,
		"EGRESS__ALLOW":        "127.0.0.0/8",
		"EGRESS__ALLOW_HTTP":   "true",
		"SECRETS__KEYSET_FILE": w.keysetFile,
		"ADMIN__LISTEN":        cmp.Or(w.Admin[instance], "127.0.0.1:0"),
	}
	var environ []string
	for name, value := range set {
		environ = append(environ, "REENVIO_"+name+"="+value)
	}
	return environ
}

// HasEnded says whether the process is gone.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Wanted says whether somebody asked for its end.
func (p *Process) Wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// Signal sends a signal to this process and no other: it has not been waited for.
func (p *Process) Signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// end sends a signal that ends the process, and waits until it is gone.
func (p *Process) end(sig os.Signal) {
	p.mu.Lock()
	p.wanted = true
	p.mu.Unlock()
	if err := p.Signal(sig); err != nil {
		p.w.T.Errorf("ending dispatcher %s: %v", p.Instance, err)
	}
	<-p.ended
}

// Kill ends the process as kill -9 does. It tells the history, and returns when
// it was.
func (p *Process) Kill() time.Time {
	from := time.Now()
	p.end(syscall.SIGKILL)
	p.w.crashed(p, from, time.Now())
	return from
}

// stopping is how long a stop may take: the drain timeout, and 20 s.
const stopping = 65 * time.Second

// Stop ends the process as a supervisor does; it must say goodbye properly.
func (p *Process) Stop() {
	late := time.AfterFunc(stopping, func() {
		p.w.T.Errorf("dispatcher %s has not stopped within %s of SIGTERM", p.Instance, stopping)
		_ = p.Signal(syscall.SIGKILL)
	})
	defer late.Stop()
	p.end(syscall.SIGTERM)
	// Before it listens for the signal it dies of it, and has done nothing.
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && p.Said("dispatcher started") {
		p.w.T.Errorf("dispatcher %s exited with %d after SIGTERM", p.Instance, code)
	}
}

// Said says whether a line of its log has this message.
func (p *Process) Said(msg string) bool {
	return slices.ContainsFunc(p.Lines(), func(line string) bool { return Message([]byte(line)) == msg })
}

// Lines are what the process has logged, but for those of single attempts.
func (p *Process) Lines() []string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for line := range bytes.Lines(data) {
		if Message(line) != "attempt" {
			lines = append(lines, string(bytes.TrimSpace(line)))
		}
	}
	return lines
}

// Message is the msg of a line of the log; empty when it is none.
func Message(line []byte) string {
	var entry struct {
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(line, &entry) // a panic is no JSON, and so has no msg
	return entry.Msg
}

// Logged counts the lines with a message, over all processes.
func (w *World) Logged(msg string) int {
	n := 0
	for _, p := range w.Processes() {
		for _, line := range p.Lines() {
			if Message([]byte(line)) == msg {
				n++
			}
		}
	}
	return n
}

// Processes are all that have been started, in that order.
func (w *World) Processes() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.processes)
}

// TransactionalID is that of a dispatcher.
func (w *World) TransactionalID(instance string) string { return w.Group + "-" + instance }

// tell shows the end of every process's log, and whether a transaction hangs.
func (w *World) tell() {
	const shown = 25
	for _, p := range w.Processes() {
		lines := p.Lines()
		lines = lines[max(0, len(lines)-shown):]
		w.T.Logf("--- dispatcher %s, process %d\n%s", p.Instance, p.cmd.Process.Pid, strings.Join(lines, "\n"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	transactions, err := kadm.NewClient(w.Client).DescribeTransactions(ctx, w.transactionalIDs()...)
	w.T.Logf("--- transactions: %+v %v", transactions, err)
}

func (w *World) transactionalIDs() (all []string) {
	for _, p := range w.Processes() {
		all = append(all, w.TransactionalID(p.Instance))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
