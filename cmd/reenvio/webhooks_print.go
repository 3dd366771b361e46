package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

func (c *cli) printWebhook(v webhookView, out format) error {
	if out == formatJSON {
		return printJSON(c.stdout, v.inForce())
	}
	e, s := v.Endpoint, v.State
	record.EndpointDefaults(&e)
	facts := [][2]string{
		{"Webhook", e.ID},
		{"Status", v.statusText()},
	}
	facts = append(facts, v.whyNothingGoes()...)
	facts = append(facts, [][2]string{
		{"Failures in a row", strconv.Itoa(s.ConsecutiveFailures)},
		{"Last answer", lastAnswer(s)},
		{"Parked events", v.parkedText()},
		{"Next", v.nextStep()},
		{"URL", urlText(e)},
		{"Secrets", secretsText(e)},
		{"Headers", headersText(e)},
		{"Tenant", e.Tenant},
		{"Description", e.Description},
		{"Event types", strings.Join(e.EventTypes, ", ")},
		{"Timeout", e.Timeout.String()},
		{"Max attempts", strconv.Itoa(e.MaxAttempts)},
		{"Schedule", scheduleText(e)},
		{"Ordering", string(e.Ordering)},
		{"Max in flight", strconv.Itoa(e.MaxInFlightOr())},
		{"Rate limit", nonZero(e.RateLimit)},
		{"Retry on", string(e.RetryOn)},
		{"Jitter", string(e.Jitter)},
		{"Auto pause after", autoPauseText(e)},
		{"Auto resume", nonZero(e.AutoResume)},
		{"Created at", timeText(e.CreatedAt)},
		{"Updated at", timeText(e.UpdatedAt)},
		{"Updated by", e.UpdatedBy},
	}...)
	if err := printFacts(c.stdout, facts); err != nil {
		return err
	}
	if v.Secret != "" {
		_, err := fmt.Fprintf(c.stdout, "\nSigning secret, shown this once: %s\n", v.Secret)
		return err
	}
	return nil
}

func nonZero[T comparable](v T) string {
	if v == *new(T) {
		return ""
	}
	return fmt.Sprint(v)
}

// urlText says why of a URL only the host is known.
func urlText(e record.Endpoint) string {
	if e.URL != redacted || e.URLHost == "" {
		return e.URL
	}
	return e.URLHost + " (only the host can be shown: the rest is encrypted, with a key that secrets.keyset_file does not hold here)"
}

func secretsText(e record.Endpoint) string {
	texts := make([]string, len(e.Secrets))
	for i, s := range e.Secrets {
		texts[i] = s.Value
		if !s.ExpiresAt.IsZero() {
			texts[i] += " until " + timeText(s.ExpiresAt)
		}
	}
	return strings.Join(texts, ", ")
}

func headersText(e record.Endpoint) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		texts = append(texts, name+": "+e.Headers[name])
	}
	return strings.Join(texts, ", ")
}

func scheduleText(e record.Endpoint) string {
	var texts []string
	for _, delay := range e.Schedule {
		texts = append(texts, delay.String())
	}
	return strings.Join(texts, ", ")
}

func autoPauseText(e record.Endpoint) string {
	if after := e.AutoPauseAfterOr(); after > 0 {
		return overview.Plural(after, "failed attempt") + " in a row"
	}
	return "never"
}
