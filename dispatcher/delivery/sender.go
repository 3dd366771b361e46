package delivery

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// Options make a Sender.
type Options struct {
	Egress  Egress
	Version string // build version, for the User-Agent
	// MaxInFlight is how many Sends run at once at most; the pool of idle
	// connections is sized by it.
	MaxInFlight int
	// Dial connects to a literal "ip:port" that the egress rule has allowed.
	// Default: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Now is the calendar's time, which is signed. Default: time.Now.
	Now func() time.Time
	// Lookup resolves a host name, best address first. Default: the machine's
	// resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Sender sends attempts. Safe for concurrent use.
type Sender struct {
	userAgent  string
	allowHTTP  bool
	now        func() time.Time
	transports *transports
}

// New checks the options and makes a Sender.
func New(o Options) (*Sender, error) {
	rules, err := newEgressRules(o.Egress)
	if err != nil {
		return nil, err
	}
	if o.MaxInFlight < 1 {
		return nil, fmt.Errorf("max in flight: %d, want 1 or more", o.MaxInFlight)
	}
	if o.Version == "" || !visible(o.Version) {
		return nil, fmt.Errorf("version: %q can't stand in a User-Agent header", o.Version)
	}
	d := &dialer{rules: rules, lookup: o.Lookup, dialIP: o.Dial}
	if d.dialIP == nil {
		d.dialIP = (&net.Dialer{}).DialContext
	}
	if d.lookup == nil {
		d.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sender{
		userAgent:  "Reenvio/" + o.Version,
		allowHTTP:  o.Egress.AllowHTTP,
		now:        o.Now,
		transports: newTransports(d, o.MaxInFlight),
	}, nil
}

// Close closes the idle connections. Sends that still run end as usual.
func (s *Sender) Close() { s.transports.closeIdle() }

// Attempt is one request to make.
type Attempt struct {
	Delivery *record.Delivery
	Number   int // from 1
	Endpoint *Endpoint
}

// Send makes the attempt and returns when its outcome is certain and the
// connection is free or closed. It takes no longer than the endpoint's timeout,
// and returns ClassCancelled soon after ctx ends.
func (s *Sender) Send(ctx context.Context, a Attempt) Result {
	started, at := time.Now(), s.now()
	result := Result{StartedAt: at, URLHost: a.Endpoint.urlHost}
	keys := a.Endpoint.keys.active(at)
	if err := s.permit(a.Endpoint, keys); err != nil {
		result.conclude(explain(ctx, &try{}, err, a.Endpoint))
		return result
	}
	within, cancel := context.WithDeadline(ctx, started.Add(a.Endpoint.timeout))
	defer cancel()
	t := &try{deadline: started.Add(a.Endpoint.timeout)}
	answer, release, err := s.exchange(t, s.request(t.context(within), a, at, keys), a)
	defer release()
	result.Duration = time.Since(started)
	ended := s.now()
	result.Reused, result.SecondTry = t.reused, t.second
	if err != nil {
		result.conclude(explain(ctx, t, err, a.Endpoint))
		return result
	}
	result.Status = answer.StatusCode
	result.conclude(judge(answer, a.Endpoint.transient))
	head, more := finish(answer, cancel, result.Class != ClassDelivered)
	if len(head) > 0 {
		result.Excerpt = a.Endpoint.excerpt(head, more, answer.Header.Get("Content-Encoding"))
	}
	result.RetryAfter = retryAfter(answer, ended)
	return result
}

// permit refuses what needs no connection to be refused.
func (s *Sender) permit(e *Endpoint, keys []signing.Key) error {
	if e.url.Scheme == "http" && !s.allowHTTP {
		return &blockedError{"the URL is http; egress.allow_http would allow it"}
	}
	if len(keys) == 0 {
		return errNoActiveSecret
	}
	return nil
}
