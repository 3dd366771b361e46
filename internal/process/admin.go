package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// AdminConfig is the configuration of the admin port.
type AdminConfig struct {
	Listen string `koanf:"listen" doc:"Address of /metrics, /livez and /readyz. It has no authentication: keep it on loopback or inside the cluster."`
}

// DefaultAdmin is the admin port without configuration.
func DefaultAdmin() AdminConfig { return AdminConfig{Listen: "127.0.0.1:7070"} }

// Validate refuses what can't be listened on.
func (c AdminConfig) Validate() error {
	return ValidListen("admin.listen", c.Listen, DefaultAdmin().Listen)
}

// ValidListen refuses an address of a setting that is no host and port; port 0 is any free one.
func ValidListen(key, address, example string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is no host:port, such as %s", key, address, example)
	}
	return nil
}

// NewRegistry returns a metrics registry with the facts of the Go runtime and the process already in it.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Probe returns the reasons why something is not so; none when it is. It is called from any goroutine and must not block.
type Probe func() []string

// AdminOptions is what the admin server shows.
type AdminOptions struct {
	Registry *prometheus.Registry
	Live     []Probe // a reason means: restart me
	Ready    []Probe // a reason means: no work gets done here now; a restart would not help
	Log      *slog.Logger
}

// Admin is the server of the admin port.
type Admin struct {
	server   *http.Server
	listener net.Listener
	stopping atomic.Bool
	served   chan struct{}
}

// StartAdmin listens and serves until Stop. It fails when the address is in use.
func StartAdmin(c AdminConfig, o AdminOptions) (*Admin, error) {
	listener, err := net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the admin address %s is in use, perhaps by another reenvio: stop it, or set admin.listen", c.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on admin.listen %s: %w", c.Listen, err)
	}
	a := &Admin{listener: listener, served: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{Registry: o.Registry}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, o.Live) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, append([]Probe{a.stopped}, o.Ready...)) })
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)}
	go func() {
		defer close(a.served)
		if err := a.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("the admin server ended", "error", err)
		}
	}()
	return a, nil
}

// Addr is the address it really listens on; the port differs from the configured one when that was 0.
func (a *Admin) Addr() string { return a.listener.Addr().String() }

// Draining makes /readyz fail from now on, while the process finishes what it has begun; /livez and /metrics go on.
func (a *Admin) Draining() { a.stopping.Store(true) }

func (a *Admin) stopped() []string {
	if a.stopping.Load() {
		return []string{"the process is stopping"}
	}
	return nil
}

// Stop lets answers in progress end until ctx does, and returns when the port is free.
func (a *Admin) Stop(ctx context.Context) error {
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, a.server.Close())
	}
	<-a.served
	return err
}

type health struct {
	Status  string   `json:"status"` // ok or failing
	Reasons []string `json:"reasons,omitempty"`
}

func answer(w http.ResponseWriter, probes []Probe) {
	var reasons []string
	for _, probe := range probes {
		reasons = append(reasons, probe()...)
	}
	slices.Sort(reasons)
	body, status := health{Status: "ok"}, http.StatusOK
	if len(reasons) > 0 {
		body, status = health{Status: "failing", Reasons: reasons}, http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that went away needs no answer
}
