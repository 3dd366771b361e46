package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reenvio/reenvio/internal/process"
	"github.com/reenvio/reenvio/internal/topology"
)

// child is a dispatcher in a process of its own, so that its memory can be told
// from that of the embedded broker.
type child struct {
	cmd    *exec.Cmd
	admin  string // its address
	log    bytes.Buffer
	ended  chan struct{} // closed when it has ended
	err    error         // how
	client http.Client
}

// startChild starts `reenvio dispatcher` with its defaults, but for where it finds
// the bench. What the environment says of Reenvio is not for it.
func startChild(binary string, w *world, topo *topology.Topology) (*child, error) {
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(binary, "dispatcher"), admin: admin, ended: make(chan struct{}), client: http.Client{Timeout: 5 * time.Second}} //nolint:noctx // it is stopped with SIGTERM
	c.cmd.Dir = w.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REENVIO_") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	c.cmd.Env = append(c.cmd.Env,
		"REENVIO_KAFKA__BROKERS="+strings.Join(w.broker.ListenAddrs(), ","), "REENVIO_KAFKA__INSTANCE_ID=bench",
		"REENVIO_TOPICS__PREFIX="+topo.Prefix(), "REENVIO_TOPICS__REPLICATION=1", "REENVIO_TOPICS__PARTITIONS="+strconv.Itoa(partitions),
		"REENVIO_SECRETS__KEYSET_FILE="+filepath.Base(w.keysetFile), "REENVIO_ADMIN__LISTEN="+admin,
		"REENVIO_EGRESS__ALLOW_HTTP=true", "REENVIO_EGRESS__ALLOW=127.0.0.0/8", "REENVIO_LOG__LEVEL=warn")
	c.cmd.Stdout, c.cmd.Stderr = io.Discard, &c.log
	if err := process.StartChild(c.cmd); err != nil {
		return nil, fmt.Errorf("starting a dispatcher: %w", err)
	}
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// freeAddress is one on loopback that nobody listens on at the moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// stop ends it as a supervisor does, and kills it when that takes too long. What it
// has logged is told when it did not end well.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	if c.err != nil {
		return fmt.Errorf("the dispatcher: %w\n%s", c.err, strings.TrimSpace(c.log.String()))
	}
	return nil
}

// ready says whether all its numbers have started.
func (c *child) ready(ctx context.Context) bool {
	_, err := c.get(ctx, "/readyz")
	if err != nil {
		return false
	}
	owned, err := c.metric(ctx, "reenvio_owned_partitions")
	return err == nil && owned == partitions
}

func (c *child) awaitReady(ctx context.Context) error {
	for !c.ready(ctx) {
		select {
		case <-c.ended:
			return errors.New("the dispatcher ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the dispatcher: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (c *child) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.admin+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", path, answer.Status)
	}
	return string(text), err
}

// metric reads one of its metrics that has no labels.
func (c *child) metric(ctx context.Context, name string) (float64, error) {
	page, err := c.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("/metrics has no %s", name)
}

func (c *child) memory(ctx context.Context) (peak func() float64) {
	ctx, cancel := context.WithCancel(ctx)
	most := make(chan float64, 1)
	go func() {
		seen := 0.0
		defer func() { most <- seen }()
		for ctx.Err() == nil {
			if bytes, err := c.metric(ctx, "process_resident_memory_bytes"); err == nil {
				seen = max(seen, bytes)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() float64 {
		cancel()
		return max(<-most, c.highWater())
	}
}

// highWater is what the kernel says of the most it has used, where it says so
// (Linux); a look now and then can miss that.
func (c *child) highWater() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kb * 1024
		}
	}
	return 0
}
