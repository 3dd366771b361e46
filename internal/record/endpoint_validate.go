package record

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Policy is what an endpoint is checked against beside the fixed bounds.
type Policy struct {
	// Tiers are the delay topics' delays (retry.tiers); none leaves hops unchecked.
	Tiers []time.Duration
	// MaxDelay ends doubling (retry.max_delay); 0 leaves it without end.
	MaxDelay time.Duration
	// AllowHTTP allows URLs without TLS (egress.allow_http).
	AllowHTTP bool
}

// Bounds of an endpoint's fields.
const (
	minTimeout       = time.Second
	maxTimeout       = 2 * time.Minute
	maxMaxAttempts   = 50
	minScheduleDelay = 500 * time.Millisecond
	maxScheduleDelay = 7 * 24 * time.Hour
	// maxHops is how often a record may pass the longest delay topic before one attempt.
	maxHops = 8
)

// Bounds of sizes. An endpoint at all of them stays below the topic's limit,
// with a third more for base64 where values are encrypted:
//
//	headers   50 x (8,192 x 4/3 + 256)       = 559 kB
//	tls       3 x 65,536 x 4/3               = 262 kB
//	types     100 x 256                      =  26 kB
//	secrets   10 x 1,024, url 8,192, texts   =  25 kB
const (
	maxURL         = 8 << 10
	maxText        = 1024
	maxTenant      = 256
	maxEventTypes  = 100
	maxTypeGlob    = 256
	maxSecrets     = 10
	maxSecretValue = 1024
	maxHeaders     = 50
	maxHeaderName  = 128
	maxHeaderValue = 8 << 10
	maxPEM         = 64 << 10
)

// Validate checks an endpoint in clear against every bound, and says all that is
// wrong in one line, without whose it is. No sensitive value is part of it.
func (e *Endpoint) Validate(p Policy) error {
	var c checks
	c.fails(ValidWebhookID(e.ID))
	c.url(e.URL, p.AllowHTTP)
	c.text("tenant", e.Tenant, maxTenant)
	c.text("description", e.Description, maxText)
	c.text("updated_by", e.UpdatedBy, maxText)
	c.eventTypes(e.EventTypes)
	c.secrets(e.Secrets)
	c.policy(e)
	c.hops(e, p)
	c.headers(e.Headers)
	c.tls(e.TLS)
	if len(c) == 0 {
		return nil
	}
	return errors.New(strings.Join(c, "; "))
}

// checks collects what is wrong.
type checks []string

func (c *checks) addf(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

func (c *checks) fails(err error) {
	if err != nil {
		c.addf("%s", err.Error())
	}
}

func (c *checks) text(field, value string, most int) {
	switch {
	case len(value) > most:
		c.addf("%s has %d bytes, the most is %d", field, len(value), most)
	case !utf8.ValidString(value):
		c.addf("%s is not valid UTF-8", field)
	}
}

// url never repeats the URL: its path and query hold tokens.
func (c *checks) url(raw string, allowHTTP bool) {
	want := "https://"
	if allowHTTP {
		want += " or http://"
	}
	if raw == "" {
		c.addf("url is missing, want https://host/path")
		return
	}
	if len(raw) > maxURL {
		c.addf("url has %d bytes, the most is %d", len(raw), maxURL)
		return
	}
	if !utf8.ValidString(raw) { // JSON would hold another one
		c.addf("url is not valid UTF-8")
		return
	}
	u, err := url.Parse(raw)
	if err != nil {
		c.addf("url can't be read, want https://host/path")
		return
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "https" || scheme == "http" && allowHTTP:
	case scheme == "http":
		c.addf("url must be https (http needs egress.allow_http)")
	default:
		c.addf("url must start with %s", want)
	}
	if u.Hostname() == "" {
		c.addf("url has no host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			c.addf("url has port %s, want 1 to 65535", cut(port, 16))
		}
	}
	if u.User != nil {
		c.addf("url has a user or password, put them into headers (Authorization)")
	}
	if strings.Contains(raw, "#") {
		c.addf("url has a fragment (#), which is never sent")
	}
}

func (c *checks) eventTypes(globs []string) {
	if len(globs) > maxEventTypes {
		c.addf("event_types has %d entries, the most is %d", len(globs), maxEventTypes)
	}
	for i, glob := range globs {
		if glob == "" {
			c.addf("event_types[%d] is empty, want a type or a glob such as order.*", i)
		}
		c.text(fmt.Sprintf("event_types[%d]", i), glob, maxTypeGlob)
	}
}

func (c *checks) secrets(secrets []Secret) {
	if len(secrets) > maxSecrets {
		c.addf("secrets has %d entries, the most is %d", len(secrets), maxSecrets)
	}
	for i, s := range secrets {
		if s.Value == "" || len(s.Value) > maxSecretValue {
			c.addf("secrets[%d].value has %d bytes, want 1 to %d", i, len(s.Value), maxSecretValue)
		}
	}
}

func (c *checks) policy(e *Endpoint) {
	if t := e.TimeoutOr(); t < minTimeout || t > maxTimeout {
		c.addf("timeout is %s, want %s to %s", t, minTimeout, maxTimeout)
	}
	if n := e.MaxAttemptsOr(); n < 1 || n > maxMaxAttempts {
		c.addf("max_attempts is %d, want 1 to %d", n, maxMaxAttempts)
	}
	if !slices.Contains([]Ordering{OrderFirstAttempt, OrderStrict, OrderKey, OrderStrictKey, OrderNone}, e.OrderingOr()) {
		c.addf("ordering is %q, want first_attempt, strict, key, strict_key or none", cut(string(e.Ordering), 32))
	}
	switch {
	case e.MaxInFlight < 0:
		c.addf("max_in_flight is %d, want at least 1", e.MaxInFlight)
	case e.MaxInFlight > 1 && e.singleFile():
		c.addf("max_in_flight is %d, but ordering %s allows 1", e.MaxInFlight, e.OrderingOr())
	}
	if e.RateLimit < 0 || math.IsNaN(e.RateLimit) || math.IsInf(e.RateLimit, 0) {
		c.addf("rate_limit is %v, want requests per second above 0", e.RateLimit)
	}
	if !slices.Contains([]RetryOn{RetryAny, RetryTransient}, e.RetryOnOr()) {
		c.addf("retry_on is %q, want any or transient", cut(string(e.RetryOn), 32))
	}
	if !slices.Contains([]Jitter{JitterAdditive, JitterFull}, e.JitterOr()) {
		c.addf("jitter is %q, want additive or full", cut(string(e.Jitter), 32))
	}
	if n := e.AutoPauseAfterOr(); n < 0 {
		c.addf("auto_pause_after is %d, want 0 (never) or more", n)
	}
	if e.AutoResume < 0 {
		c.addf("auto_resume is %s, want a duration above 0", e.AutoResume)
	}
	if len(e.Schedule) > maxMaxAttempts-1 {
		c.addf("schedule has %d delays, the most is %d", len(e.Schedule), maxMaxAttempts-1)
	}
	for i, delay := range e.Schedule {
		if d := time.Duration(delay); d < minScheduleDelay || d > maxScheduleDelay {
			c.addf("schedule[%d] is %s, want %s to %s", i, d, minScheduleDelay, maxScheduleDelay)
		}
	}
}

// hops refuses delays that would take a record through the longest delay topic
// more than maxHops times, jitter not counted. What is beyond its own bound has
// been told already.
func (c *checks) hops(e *Endpoint, p Policy) {
	if len(p.Tiers) == 0 {
		return
	}
	longest := slices.Max(p.Tiers)
	tooLong := func(delay time.Duration) bool { return delay > 0 && (delay-1)/longest >= maxHops }
	const mend = "more than %d hops of the longest delay topic (%s): add a longer one to retry.tiers"
	if len(e.Schedule) > 0 {
		for i, delay := range e.Schedule {
			if d := time.Duration(delay); d <= maxScheduleDelay && tooLong(d) {
				c.addf("schedule[%d] is %s, "+mend, i, delay, maxHops, longest)
			}
		}
		return
	}
	if e.MaxAttemptsOr() > maxMaxAttempts {
		return
	}
	if last := longestDoubling(e.MaxAttemptsOr(), p.MaxDelay); tooLong(last) {
		c.addf("max_attempts is %d, the delay before the last one %s, "+mend, e.MaxAttemptsOr(), last, maxHops, longest)
	}
}

// longestDoubling is the delay before the last of n attempts: 2^(n-1) s, up to most.
func longestDoubling(n int, most time.Duration) time.Duration {
	if n < 2 {
		return 0
	}
	// 2^33 s is 272 years, and the last power of two that a Duration holds.
	delay := time.Second << min(n-1, 33)
	if most > 0 {
		delay = min(delay, most)
	}
	return delay
}

func (c *checks) tls(t *TLS) {
	if t == nil {
		return
	}
	for _, part := range []struct{ field, value string }{{"tls.ca", t.CA}, {"tls.cert", t.Cert}, {"tls.key", t.Key}} {
		if len(part.value) > maxPEM {
			c.addf("%s has %d bytes, the most is %d", part.field, len(part.value), maxPEM)
			return
		}
	}
	if t.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.CA)) {
		c.addf("tls.ca holds no certificate in PEM")
	}
	if t.Cert == "" && t.Key == "" {
		return
	}
	if _, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key)); err != nil {
		c.addf("tls.cert and tls.key must be a certificate and its key, both in PEM")
	}
}
