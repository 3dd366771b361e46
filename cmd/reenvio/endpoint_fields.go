package main

import (
	"slices"
	"strings"

	"github.com/reenvio/reenvio/internal/record"
)

// endpointField is a field of an endpoint that has a flag: how it is set to what the flags say (nil: not this simply), and how it is taken
// back to its default.
type endpointField struct {
	flag  string
	set   func(e *record.Endpoint, f *endpointFlags)
	unset func(e *record.Endpoint)
}

var endpointFields = []endpointField{
	{"url", func(e *record.Endpoint, f *endpointFlags) { e.URL = f.endpoint.URL }, nil},
	{"tenant", func(e *record.Endpoint, f *endpointFlags) { e.Tenant = f.endpoint.Tenant }, func(e *record.Endpoint) { e.Tenant = "" }},
	{"description", func(e *record.Endpoint, f *endpointFlags) { e.Description = f.endpoint.Description }, func(e *record.Endpoint) { e.Description = "" }},
	{"event-types", func(e *record.Endpoint, f *endpointFlags) { e.EventTypes = f.endpoint.EventTypes }, func(e *record.Endpoint) { e.EventTypes = nil }},
	{"header", nil, func(e *record.Endpoint) { e.Headers = nil }},
	{"timeout", func(e *record.Endpoint, f *endpointFlags) { e.Timeout = record.Duration(f.timeout) }, func(e *record.Endpoint) { e.Timeout = 0 }},
	{"max-attempts", func(e *record.Endpoint, f *endpointFlags) { e.MaxAttempts = f.endpoint.MaxAttempts }, func(e *record.Endpoint) { e.MaxAttempts = 0 }},
	{"schedule", setSchedule, func(e *record.Endpoint) { e.Schedule = nil }},
	{"jitter", func(e *record.Endpoint, f *endpointFlags) { e.Jitter = f.endpoint.Jitter }, func(e *record.Endpoint) { e.Jitter = "" }},
	{"retry-on", func(e *record.Endpoint, f *endpointFlags) { e.RetryOn = f.endpoint.RetryOn }, func(e *record.Endpoint) { e.RetryOn = "" }},
	{"ordering", func(e *record.Endpoint, f *endpointFlags) { e.Ordering = f.endpoint.Ordering }, func(e *record.Endpoint) { e.Ordering = "" }},
	{"max-in-flight", func(e *record.Endpoint, f *endpointFlags) { e.MaxInFlight = f.endpoint.MaxInFlight }, func(e *record.Endpoint) { e.MaxInFlight = 0 }},
	{"rate-limit", func(e *record.Endpoint, f *endpointFlags) { e.RateLimit = f.endpoint.RateLimit }, func(e *record.Endpoint) { e.RateLimit = 0 }},
	{"auto-pause-after", func(e *record.Endpoint, f *endpointFlags) { e.AutoPauseAfter = &f.autoPauseAfter }, func(e *record.Endpoint) { e.AutoPauseAfter = nil }},
	{"auto-resume", func(e *record.Endpoint, f *endpointFlags) { e.AutoResume = record.Duration(f.autoResume) }, func(e *record.Endpoint) { e.AutoResume = 0 }},
	{"enabled", func(e *record.Endpoint, f *endpointFlags) { e.Enabled = &f.enabled }, func(e *record.Endpoint) { e.Enabled = nil }},
	{"tls-ca", nil, unsetTLS("tls-ca")},
	{"tls-cert", nil, unsetTLS("tls-cert")},
	{"tls-key", nil, unsetTLS("tls-key")},
}

func setSchedule(e *record.Endpoint, f *endpointFlags) {
	e.Schedule = nil
	for _, delay := range f.schedule {
		e.Schedule = append(e.Schedule, record.Duration(delay))
	}
}

func unsetTLS(flag string) func(*record.Endpoint) {
	return func(e *record.Endpoint) {
		if e.TLS == nil {
			return
		}
		*tlsField(e.TLS, flag) = ""
		if e.TLS.CA == "" && e.TLS.Cert == "" && e.TLS.Key == "" && len(e.TLS.Extra) == 0 {
			e.TLS = nil
		}
	}
}

// unsetFields is what takes the named fields back to their defaults.
func unsetFields(names []string) (func(*record.Endpoint), error) {
	var unset []func(*record.Endpoint)
	for _, name := range names {
		i := slices.IndexFunc(endpointFields, func(f endpointField) bool { return f.flag == name })
		if i < 0 || endpointFields[i].unset == nil {
			return nil, usagef("--unset: %q is no field with a default; those are %s", name, strings.Join(unsettable(), ", "))
		}
		unset = append(unset, endpointFields[i].unset)
	}
	return func(e *record.Endpoint) {
		for _, f := range unset {
			f(e)
		}
	}, nil
}

func unsettable() []string {
	var names []string
	for _, f := range endpointFields {
		if f.unset != nil {
			names = append(names, f.flag)
		}
	}
	return names
}
