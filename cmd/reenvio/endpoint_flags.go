package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/signing"
)

// endpointFlags are the fields of an endpoint as flags: their names in kebab-case.
type endpointFlags struct {
	flags          *pflag.FlagSet
	endpoint       record.Endpoint
	timeout        time.Duration
	schedule       []time.Duration
	autoResume     time.Duration
	autoPauseAfter int
	enabled        bool
	headers        []string
	secret         string
	tls            map[string]*string // by flag
}

func newEndpointFlags(flags *pflag.FlagSet) *endpointFlags {
	f := &endpointFlags{flags: flags, tls: map[string]*string{}}
	e := &f.endpoint
	flags.StringVar(&e.URL, "url", "", "where events are sent, https://host/path (required)")
	flags.StringVar(&f.secret, "secret", "", "signing secret: whsec_..., @FILE, or - for standard input; without it, one is made and shown once")
	flags.StringVar(&e.Tenant, "tenant", "", "whose webhook it is; events of a fan-out go to the webhooks of one tenant")
	flags.StringVar(&e.Description, "description", "", "a note for people")
	flags.StringSliceVar(&e.EventTypes, "event-types", nil, "types that a fan-out sends here, such as order.*; an event keyed to the webhook is always sent")
	flags.StringArrayVar(&f.headers, "header", nil, "a header of every request, 'Name: value'; can be repeated")
	flags.DurationVar(&f.timeout, "timeout", record.DefaultTimeout, "the longest an attempt may take, 1s to 2m")
	flags.IntVar(&e.MaxAttempts, "max-attempts", record.DefaultMaxAttempts, "attempts for an event, the first included, 1 to 50")
	flags.DurationSliceVar(&f.schedule, "schedule", nil, "delays between attempts instead of doubling, such as 1s,10s,1m; each 500ms to 168h")
	flags.StringVar((*string)(&e.Jitter), "jitter", string(record.JitterAdditive), "additive adds a little to each delay, full draws from 500ms to the delay")
	flags.StringVar((*string)(&e.RetryOn), "retry-on", string(record.RetryAny), "any failure, or only transient ones")
	flags.StringVar((*string)(&e.Ordering), "ordering", string(record.OrderFirstAttempt), "what may overtake what: first_attempt (first attempts in the order of the events; the others of the contract are not there yet)")
	flags.IntVar(&e.MaxInFlight, "max-in-flight", 0, "requests at once; 1 for first_attempt")
	flags.Float64Var(&e.RateLimit, "rate-limit", 0, "requests per second; not there yet")
	flags.IntVar(&f.autoPauseAfter, "auto-pause-after", record.DefaultAutoPauseAfter, "failed attempts in a row after which the webhook is paused; 0 is never")
	flags.DurationVar(&f.autoResume, "auto-resume", 0, "how long a pause by failures lasts; not there yet: until a person resumes it")
	flags.BoolVar(&f.enabled, "enabled", true, "false pauses the webhook until it is set to true")
	for name, doc := range map[string]string{
		"tls-ca": "authorities that may vouch for the server, in PEM", "tls-cert": "client certificate, in PEM", "tls-key": "its private key, in PEM",
	} {
		f.tls[name] = flags.String(name, "", doc+": @FILE, or - for standard input")
	}
	return f
}

// build reads what the flags point to, and returns the endpoint with only those fields set that were given: what has its default today
// follows the default tomorrow.
func (f *endpointFlags) build(ctx context.Context, c *cli, id string) (record.Endpoint, error) {
	e := f.endpoint
	e.ID = id
	if e.URL == "" {
		return e, usagef("--url is missing: where are the events of %s to be sent?", id)
	}
	if f.flags.Changed("timeout") {
		e.Timeout = record.Duration(f.timeout)
	}
	if f.flags.Changed("auto-pause-after") {
		e.AutoPauseAfter = &f.autoPauseAfter
	}
	if f.flags.Changed("enabled") {
		e.Enabled = &f.enabled
	}
	for name, unset := range map[string]func(){
		"max-attempts": func() { e.MaxAttempts = 0 }, "jitter": func() { e.Jitter = "" },
		"retry-on": func() { e.RetryOn = "" }, "ordering": func() { e.Ordering = "" },
	} {
		if !f.flags.Changed(name) {
			unset()
		}
	}
	e.AutoResume = record.Duration(f.autoResume)
	for _, delay := range f.schedule {
		e.Schedule = append(e.Schedule, record.Duration(delay))
	}
	if err := supported(e); err != nil {
		return e, err
	}
	var err error
	if e.Headers, err = parseHeaders(f.headers); err != nil {
		return e, err
	}
	e.TLS, err = f.buildTLS(ctx, c)
	return e, err
}

// supported refuses what an endpoint may say and this version's dispatcher does not do yet: better refused than ignored.
func supported(e record.Endpoint) error {
	switch {
	case e.OrderingOr() != record.OrderFirstAttempt:
		return usagef("--ordering is %q: this version has first_attempt only", e.Ordering)
	case e.RateLimit != 0:
		return usagef("--rate-limit is not there yet in this version")
	case e.AutoResume != 0:
		return usagef("--auto-resume is not there yet in this version: a person resumes, with `reenvio webhooks resume`")
	}
	return nil
}

func parseHeaders(lines []string) (map[string]string, error) {
	var headers map[string]string
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok { // the line may hold a token, so it is not shown
			return nil, usagef("the --header number %d has no colon: write it 'Name: value'", i+1)
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}

func (f *endpointFlags) buildTLS(ctx context.Context, c *cli) (*record.TLS, error) {
	var own record.TLS
	set := false
	for name, field := range map[string]*string{"tls-ca": &own.CA, "tls-cert": &own.Cert, "tls-key": &own.Key} {
		if *f.tls[name] == "" {
			continue
		}
		data, err := c.content(ctx, "--"+name, *f.tls[name])
		if err != nil {
			return nil, err
		}
		*field, set = string(data), true
	}
	if !set {
		return nil, nil
	}
	return &own, nil
}

// signingSecret is the one given, or a new one, which must be shown: nobody can read it later without the keyset.
func (f *endpointFlags) signingSecret(ctx context.Context, c *cli) (secret string, minted bool, err error) {
	if f.secret == "" {
		return signing.NewSecret(), true, nil
	}
	data, err := c.content(ctx, "--secret", f.secret)
	if err != nil {
		return "", false, err
	}
	secret = string(bytes.TrimSpace(data))
	if _, err := signing.ParseSecret(secret); err != nil {
		return "", false, usageError{fmt.Errorf("--secret: %w", err)}
	}
	return secret, false, nil
}
