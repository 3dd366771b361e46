package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/reenvio/reenvio/internal/overview"
)

//go:embed dev_page.html dev_page.css
var pageFiles embed.FS

// page is the one page of `reenvio dev`: what flows, who is paused, what is dead, what to try. It shows and does nothing: there is no form
// on it, and no script.
//
// It has no authentication, so it is served on loopback only, and only under a name of this machine: a page elsewhere, whose name was made
// to point here (DNS rebinding), could read it otherwise.
type page struct {
	session  *session
	flow     *flow
	receiver *receiver
	self     string // how a person starts this program
	log      *slog.Logger

	listener net.Listener
	server   *http.Server
	served   chan struct{} // nil until it serves
	template *template.Template

	mu    sync.Mutex
	file  *devFile
	since time.Time
	last  *pageData
}

// pageAge is how old what is shown may be: ten tabs cost no more than one.
const pageAge = time.Second

// pageRefresh is how often a browser looks again.
const pageRefresh = 2 * time.Second

// listenPage takes the address, so that a taken one is told at the start.
func listenPage(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !loopbackName(host) {
		return nil, usagef("dlq.listen is %s: the page of `reenvio dev` has no authentication and is for this machine only; set a loopback address, such as 127.0.0.1:7090", address)
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s of the page is in use, perhaps by another `reenvio dev`: stop that, or set dlq.listen (with port 0 it is any free one)", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on dlq.listen %s: %w", address, err)
	}
	return listener, nil
}

// loopbackName: whether a host, of an address to listen on or of a request, is this machine as it calls itself.
func loopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// start serves; file says where everything else is.
func (p *page) start(file *devFile) error {
	var err error
	if p.template, err = template.New("dev_page.html").Funcs(pageFuncs).ParseFS(pageFiles, "dev_page.html"); err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	p.file, p.since = file, time.Now()
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}
	p.served = make(chan struct{})
	go func() {
		defer close(p.served)
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("the page's server ended", "error", err)
		}
	}()
	return nil
}

func (p *page) stop(ctx context.Context) error {
	if p.served == nil {
		return p.listener.Close()
	}
	err := p.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, p.server.Close())
	}
	<-p.served
	return err
}

func (p *page) url() string { return "http://" + p.listener.Addr().String() + "/" }

func (p *page) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.serve)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, pageFiles, "dev_page.css") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if len(host) > 2 && host[0] == '[' {
			host = host[1 : len(host)-1] // [::1] without a port
		}
		if !loopbackName(host) {
			http.Error(w, "This page is for this machine only: open it as "+p.url(), http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	data, err := p.data(r.Context())
	if err != nil {
		http.Error(w, "Reading the topics failed: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	shown := *data
	shown.Still = r.URL.Query().Has("still")
	var text bytes.Buffer // whole or not at all
	if err := p.template.Execute(&text, shown); err != nil {
		p.log.Error("the page can't be written", "error", err)
		http.Error(w, "The page can't be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = text.WriteTo(w) // a browser that went away needs no answer
}

// data is what is shown, read at most once a second.
func (p *page) data(ctx context.Context) (*pageData, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && time.Since(p.last.Overview.At.Time) < pageAge {
		return p.last, nil
	}
	o, err := overview.Read(ctx, p.session.lookAt(nil))
	if err != nil {
		return nil, err
	}
	endpoints, err := p.session.control(nil).ListEndpoints(ctx)
	if err != nil {
		return nil, err
	}
	p.last = p.put(o, endpoints)
	return p.last, nil
}
