package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Endpoint is a record of the endpoints topic: a webhook's configuration. URL,
// header values, secrets and the client key are sensitive: in Kafka they are
// encrypted one by one, in a clear copy they are what is sent. Printing an
// Endpoint shows none of them.
type Endpoint struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"`
	URL    string `json:"url,omitempty"`
	// URLHost is the URL's host and port, in clear, for people and metrics.
	URLHost     string `json:"url_host,omitempty"`
	Description string `json:"description,omitempty"`
	// EventTypes are globs such as order.*; they choose receivers of a fan-out only.
	EventTypes []string `json:"event_types,omitempty"`
	Secrets    []Secret `json:"secrets,omitempty"`
	// Timeout covers one attempt, DNS to the last byte; 0 is the default.
	Timeout Duration `json:"timeout,omitempty"`
	// MaxAttempts counts the first one; 0 is the default.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Schedule are the delays between attempts, instead of doubling.
	Schedule    []Duration `json:"schedule,omitempty"`
	Ordering    Ordering   `json:"ordering,omitempty"`
	MaxInFlight int        `json:"max_in_flight,omitempty"`
	// RateLimit is in requests per second; 0 is none.
	RateLimit float64 `json:"rate_limit,omitempty"`
	RetryOn   RetryOn `json:"retry_on,omitempty"`
	Jitter    Jitter  `json:"jitter,omitempty"`
	// AutoPauseAfter is a number of failed attempts in a row; 0 is never, nil the default.
	AutoPauseAfter *int `json:"auto_pause_after,omitempty"`
	// AutoResume is how long a pause by failures lasts; 0 is until a person ends it.
	AutoResume Duration          `json:"auto_resume,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	TLS        *TLS              `json:"tls,omitempty"`
	// Enabled is true when nil.
	Enabled   *bool  `json:"enabled,omitempty"`
	CreatedAt Time   `json:"created_at,omitzero"`
	UpdatedAt Time   `json:"updated_at,omitzero"`
	UpdatedBy string `json:"updated_by,omitempty"`
	Extra     Fields `json:"-"`
}

// Secret signs requests from CreatedAt until ExpiresAt (zero: for good).
type Secret struct {
	Value     string `json:"value"`
	CreatedAt Time   `json:"created_at,omitzero"`
	ExpiresAt Time   `json:"expires_at,omitzero"`
	Extra     Fields `json:"-"`
}

// TLS is what a webhook's own PKI needs, in PEM.
type TLS struct {
	CA    string `json:"ca,omitempty"`
	Cert  string `json:"cert,omitempty"`
	Key   string `json:"key,omitempty"`
	Extra Fields `json:"-"`
}

// Ordering is what may overtake what within a webhook.
type Ordering string

// The orderings.
const (
	OrderFirstAttempt Ordering = "first_attempt"
	OrderStrict       Ordering = "strict"
	OrderKey          Ordering = "key"
	OrderStrictKey    Ordering = "strict_key"
	OrderNone         Ordering = "none"
)

// RetryOn is which failures are tried again.
type RetryOn string

// The choices: any failure, or only those that may pass.
const (
	RetryAny       RetryOn = "any"
	RetryTransient RetryOn = "transient"
)

// Jitter is how delays are spread.
type Jitter string

// The choices: a little is added, or anything from the floor to the delay.
const (
	JitterAdditive Jitter = "additive"
	JitterFull     Jitter = "full"
)

// What an endpoint has that does not say otherwise.
const (
	DefaultTimeout        = 30 * time.Second
	DefaultMaxAttempts    = 5
	DefaultAutoPauseAfter = 10
	DefaultMaxInFlight    = 8 // for the orderings that allow more than one
)

// ParseEndpoint reads the value of a record of the endpoints topic; a tombstone
// (nil) is the caller's to see. Validate tells whether it can be used.
func ParseEndpoint(data []byte) (Endpoint, error) {
	var e Endpoint
	if err := e.UnmarshalJSON(data); err != nil {
		return Endpoint{}, fmt.Errorf("reading endpoint: %w", err)
	}
	return e, nil
}

// EndpointDisabled says whether the value of an endpoint's record disables its
// webhook, without reading the rest of it: a number looks at all that it has when
// it starts, which may be 100,000.
func EndpointDisabled(data []byte) bool {
	if !bytes.Contains(data, []byte(`"enabled"`)) {
		return false
	}
	var e struct {
		Enabled *bool `json:"enabled"`
	}
	return json.Unmarshal(data, &e) == nil && e.Enabled != nil && !*e.Enabled
}

// Marshal writes the value.
func (e Endpoint) Marshal() []byte { return mustEncode(e) }

// Clone is a deep copy: what is sealed or opened in it does not show in e.
func (e Endpoint) Clone() Endpoint {
	e.EventTypes = slices.Clone(e.EventTypes)
	e.Secrets = slices.Clone(e.Secrets)
	e.Schedule = slices.Clone(e.Schedule)
	e.Headers = maps.Clone(e.Headers)
	e.Extra = maps.Clone(e.Extra)
	e.AutoPauseAfter = clonePointer(e.AutoPauseAfter)
	e.Enabled = clonePointer(e.Enabled)
	e.TLS = clonePointer(e.TLS)
	return e
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// EndpointDefaults fills in what e leaves open, for people to see, and the host
// of a URL in clear. MaxInFlight is left: its default follows the ordering,
// which may change later.
func EndpointDefaults(e *Endpoint) {
	if host := hostOf(e.URL); host != "" {
		e.URLHost = host
	}
	e.Timeout = Duration(e.TimeoutOr())
	e.MaxAttempts = e.MaxAttemptsOr()
	e.Ordering = e.OrderingOr()
	e.RetryOn = e.RetryOnOr()
	e.Jitter = e.JitterOr()
	pause, enabled := e.AutoPauseAfterOr(), e.IsEnabled()
	e.AutoPauseAfter, e.Enabled = &pause, &enabled
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// TimeoutOr is the timeout, or its default.
func (e *Endpoint) TimeoutOr() time.Duration { return or(time.Duration(e.Timeout), DefaultTimeout) }

// MaxAttemptsOr is the number of attempts, or its default.
func (e *Endpoint) MaxAttemptsOr() int { return or(e.MaxAttempts, DefaultMaxAttempts) }

// OrderingOr is the ordering, or its default.
func (e *Endpoint) OrderingOr() Ordering { return or(e.Ordering, OrderFirstAttempt) }

// RetryOnOr is what is retried, or its default.
func (e *Endpoint) RetryOnOr() RetryOn { return or(e.RetryOn, RetryAny) }

// JitterOr is the jitter, or its default.
func (e *Endpoint) JitterOr() Jitter { return or(e.Jitter, JitterAdditive) }

// MaxInFlightOr is how many requests may run at once, or the ordering's default.
func (e *Endpoint) MaxInFlightOr() int {
	if e.singleFile() {
		return 1
	}
	return or(e.MaxInFlight, DefaultMaxInFlight)
}

// singleFile says that the ordering allows one request at a time.
func (e *Endpoint) singleFile() bool {
	return e.OrderingOr() == OrderFirstAttempt || e.OrderingOr() == OrderStrict
}

// AutoPauseAfterOr is the length of the streak that pauses, or its default; 0 is never.
func (e *Endpoint) AutoPauseAfterOr() int {
	if e.AutoPauseAfter == nil {
		return DefaultAutoPauseAfter
	}
	return *e.AutoPauseAfter
}

// IsEnabled says whether the configuration wants deliveries at all.
func (e *Endpoint) IsEnabled() bool { return e.Enabled == nil || *e.Enabled }

func or[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}
