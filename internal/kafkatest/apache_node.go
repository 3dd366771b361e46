package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// node is one broker-controller: its files, and its process while it runs.
type node struct {
	id         int
	broker     int // ports
	controller int
	clusterID  string
	features   []string
	paths      []path
	java       string
	classpath  string
	dir        string
	data       string // its log.dirs
	log        string

	mu   sync.Mutex
	proc *process
}

// path is a listener beside the broker's own.
type path struct {
	name string
	Hop
}

// process is one life of a broker.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	wanted bool // somebody asked for its end
}

func (n *node) addr() string   { return local(n.broker) }
func (n *node) config() string { return filepath.Join(n.dir, "server.properties") }

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// format makes the data directory, as Kafka asks for before a first start.
func (n *node) format(ctx context.Context) error {
	args := []string{"-cp", n.classpath, "kafka.tools.StorageTool", "format", "-t", n.clusterID, "-c", n.config()}
	for _, f := range n.features {
		args = append(args, "--feature", f)
	}
	out, err := exec.CommandContext(ctx, n.java, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("formatting broker %d: %w\n%s", n.id, err, out)
	}
	return nil
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		return fmt.Errorf("broker %d runs already", n.id)
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// The heap is what three brokers beside the test can have on a small machine;
	// the serial collector and the first compiler are the cheapest where cores are few.
	cmd := exec.Command(n.java, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile="+filepath.Join(n.dir, "log4j2.properties"),
		"-cp", n.classpath, "kafka.Kafka", n.config())
	cmd.Stdout, cmd.Stderr = log, log
	if err := StartChild(cmd); err != nil {
		return fmt.Errorf("starting broker %d: %w", n.id, err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	n.proc = p
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// kill ends the process as kill -9 does, and returns when it is gone.
func (n *node) kill() error { return n.end(context.Background(), syscall.SIGKILL) }

// terminate asks the broker to stop: it hands its partitions over first.
func (n *node) terminate(ctx context.Context) error { return n.end(ctx, syscall.SIGTERM) }

func (n *node) end(ctx context.Context, sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return nil
	}
	n.proc.wanted = true
	if err := n.proc.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.proc.ended:
	case <-ctx.Done():
		return fmt.Errorf("waiting for broker %d to stop: %w", n.id, ctx.Err())
	}
	n.proc = nil
	return nil
}

// awaitEnd waits until the process has ended by itself. Then it can be started again.
func (n *node) awaitEnd(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return fmt.Errorf("broker %d does not run", n.id)
	}
	select {
	case <-n.proc.ended:
	case <-ctx.Done():
		return fmt.Errorf("waiting for broker %d to end by itself: %w", n.id, ctx.Err())
	}
	n.proc = nil
	return nil
}

func (n *node) runs() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc != nil
}

// failed is an error when the process ended by itself.
func (n *node) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil || n.proc.wanted {
		return nil
	}
	select {
	case <-n.proc.ended:
		return fmt.Errorf("broker %d ended by itself: %s", n.id, n.proc.cmd.ProcessState)
	default:
		return nil
	}
}

// lastLines is the end of the log, enough to see what a broker died of.
func (n *node) lastLines() string {
	data, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	lines = lines[max(0, len(lines)-20):]
	for i, line := range lines {
		// Some lines name every partition of the broker.
		lines[i] = line[:min(len(line), 300)]
	}
	return strings.Join(lines, "\n")
}
