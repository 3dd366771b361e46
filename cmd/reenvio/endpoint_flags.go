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
	schedule       durations
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
	durationVar(flags, &f.timeout, "timeout", record.DefaultTimeout, "the longest an attempt may take, 1s to 2m")
	flags.IntVar(&e.MaxAttempts, "max-attempts", record.DefaultMaxAttempts, "attempts for an event, the first included, 1 to 50")
	flags.Var(&f.schedule, "schedule", "delays between attempts instead of doubling, such as 1s,10s,1m; each 500ms to 168h; with more attempts than that the last is repeated")
	flags.StringVar((*string)(&e.Jitter), "jitter", string(record.JitterAdditive), "additive adds a little to each delay, full draws from 500ms to the delay")
	flags.StringVar((*string)(&e.RetryOn), "retry-on", string(record.RetryAny), "any failure, or only transient ones")
	flags.StringVar((*string)(&e.Ordering), "ordering", string(record.OrderFirstAttempt), "what may overtake what: first_attempt (first attempts go out in the order of the events), strict (nothing overtakes a failed event), key, strict_key (the same for each ce_partitionkey by itself), none")
	flags.IntVar(&e.MaxInFlight, "max-in-flight", 0, "requests at once; 1 for first_attempt and strict, else 8 by default")
	flags.Float64Var(&e.RateLimit, "rate-limit", 0, "requests per second, evenly spaced; 0 is no limit")
	flags.IntVar(&f.autoPauseAfter, "auto-pause-after", record.DefaultAutoPauseAfter, "failed attempts in a row after which the webhook is paused; 0 is never")
	durationVar(flags, &f.autoResume, "auto-resume", 0, "how long a pause by failures lasts; 0 is until a person resumes it")
	flags.BoolVar(&f.enabled, "enabled", true, "false pauses the webhook until it is set to true")
	for name, doc := range map[string]string{
		"tls-ca": "authorities that may vouch for the server, in PEM", "tls-cert": "client certificate, in PEM", "tls-key": "its private key, in PEM",
	} {
		f.tls[name] = flags.String(name, "", doc+": @FILE, or - for standard input")
	}
	return f
}

// build is the endpoint that the flags describe, for one that is new.
func (f *endpointFlags) build(ctx context.Context, c *cli, id string) (record.Endpoint, error) {
	e := record.Endpoint{ID: id}
	if f.endpoint.URL == "" {
		return e, usagef("--url is missing: where are the events of the webhook to be sent?")
	}
	for i, line := range f.headers {
		if _, value, colon := strings.Cut(line, ":"); colon && strings.TrimSpace(value) == "" {
			return e, usagef("the --header number %d has no value", i+1)
		}
	}
	change, err := f.change(ctx, c)
	if err == nil {
		change(&e)
	}
	return e, err
}

// change reads what the flags point to, and returns what they do to an endpoint. Only those fields are set that were given: what has its
// default today follows the default tomorrow.
func (f *endpointFlags) change(ctx context.Context, c *cli) (func(*record.Endpoint), error) {
	if err := f.zero(); err != nil {
		return nil, err
	}
	headers, err := parseHeaders(f.headers)
	if err != nil {
		return nil, err
	}
	pems, err := f.readTLS(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(e *record.Endpoint) {
		for _, field := range endpointFields {
			if field.set != nil && f.flags.Changed(field.flag) {
				field.set(e, f)
			}
		}
		for _, h := range headers {
			setHeader(e, h[0], h[1])
		}
		for flag, pem := range pems {
			if e.TLS == nil {
				e.TLS = &record.TLS{}
			}
			*tlsField(e.TLS, flag) = pem
		}
	}, nil
}

// zero refuses a 0 that was given: in a record it would stand for the default.
func (f *endpointFlags) zero() error {
	for _, field := range []struct {
		flag   string
		is     bool
		bounds string
	}{
		{"timeout", f.timeout == 0, "1s to 2m"},
		{"max-attempts", f.endpoint.MaxAttempts == 0, "1 to 50"},
		{"max-in-flight", f.endpoint.MaxInFlight == 0, "1 or more"},
	} {
		if flag := f.flags.Lookup(field.flag); field.is && flag.Changed {
			return usagef("--%s is %s: it must be %s", field.flag, flag.Value, field.bounds)
		}
	}
	return nil
}

// parseHeaders are the names and values of headers, in the order given. One without a value takes the header away.
func parseHeaders(lines []string) (headers [][2]string, err error) {
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok { // the line may hold a token, so it is not shown
			return nil, usagef("the --header number %d has no colon: write it 'Name: value'", i+1)
		}
		headers = append(headers, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return headers, nil
}

// setHeader replaces the header of this name, in whatever case it is written there.
func setHeader(e *record.Endpoint, name, value string) {
	for there := range e.Headers {
		if strings.EqualFold(there, name) {
			delete(e.Headers, there)
		}
	}
	if value == "" {
		return
	}
	if e.Headers == nil {
		e.Headers = map[string]string{}
	}
	e.Headers[name] = value
}

func tlsField(t *record.TLS, flag string) *string {
	switch flag {
	case "tls-ca":
		return &t.CA
	case "tls-cert":
		return &t.Cert
	}
	return &t.Key
}

// readTLS are the contents of the files that were given, by flag.
func (f *endpointFlags) readTLS(ctx context.Context, c *cli) (map[string]string, error) {
	pems := map[string]string{}
	for name, source := range f.tls {
		if *source == "" {
			continue
		}
		data, err := c.content(ctx, "--"+name, *source)
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return nil, usagef("--%s: nothing is in %s: --unset takes away what is there", name, *source)
		}
		pems[name] = string(data)
	}
	return pems, nil
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
