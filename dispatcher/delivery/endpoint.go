package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

// Endpoint is a webhook's configuration, prepared once for all its requests.
// It is immutable, and prints nothing of its secrets.
type Endpoint struct {
	url       *url.URL
	address   string // host:port to dial
	urlHost   string
	timeout   time.Duration
	transient bool // retry_on: transient
	headers   http.Header
	keys      signers
	tls       *ownTLS
	secrets   []string // what may not be shown, see secretsOf
}

// Prepare reads what requests need from a configuration with its values in
// clear. An error means that no request can be built from it, names the field,
// and holds no value of it.
func Prepare(e record.Endpoint) (*Endpoint, error) {
	p := &Endpoint{timeout: e.TimeoutOr(), transient: e.RetryOnOr() == record.RetryTransient}
	if err := p.setURL(e.URL); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	var err error
	if p.headers, err = prepareHeaders(e.Headers); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	if p.keys, err = newSigners(e.Secrets); err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	if p.tls, err = newOwnTLS(e.TLS); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	p.secrets = secretsOf(p.url.RequestURI(), p.parts())
	return p, nil
}

// setURL repeats what the endpoint's validation demands, because the record may
// come from another writer.
func (e *Endpoint) setURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it can't be read as a URL") // the error of url.Parse repeats it
	}
	u.Scheme = strings.ToLower(u.Scheme)
	port := u.Port()
	switch {
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want an https URL")
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return errors.New("want a URL with a host")
	}
	if u.User != nil {
		return errors.New("want a URL without user and password: credentials go into headers")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("want a port from 1 to 65535")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err != nil {
		if err := validHostName(strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))); err != nil {
			return fmt.Errorf("its host: %w", err)
		}
	} else if addr.Zone() != "" {
		return errors.New("its host: want an address without a zone")
	}
	u.Fragment, u.RawFragment = "", ""
	e.url, e.urlHost = u, strings.ToLower(u.Host)
	e.address = joinHostPort(u.Hostname(), port)
	return nil
}

func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]:" + port
	}
	return host + ":" + port
}

// parts are the pieces of the URL and the headers in which tokens are put.
func (e *Endpoint) parts() []string {
	parts := strings.Split(e.url.EscapedPath(), "/")
	parts = append(parts, e.url.Path)
	for _, values := range e.url.Query() {
		parts = append(parts, values...)
	}
	for _, values := range e.headers {
		for _, v := range values {
			parts = append(parts, v)
			parts = append(parts, strings.Fields(v)...) // "Bearer TOKEN"
		}
	}
	return parts
}

// Timeout is the deadline of one attempt.
func (e *Endpoint) Timeout() time.Duration { return e.timeout }

// URLHost is the host of the URL, with its port where it has one.
func (e *Endpoint) URLHost() string { return e.urlHost }

// String keeps the URL's path and the keys out of logs.
func (e *Endpoint) String() string { return "endpoint at " + e.urlHost }

// GoString is String, for %#v.
func (e *Endpoint) GoString() string { return e.String() }
