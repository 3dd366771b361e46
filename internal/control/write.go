package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/record"
)

var errNoKeys = errors.New("no keyset to encrypt it with: set secrets.keyset_file or secrets.keyset")

// WriteEndpoint creates or changes a webhook: e with its values in clear (or
// still sealed as they were read) replaces what is there, if its ETag is still
// expect; Absent for a webhook that must not exist. It returns the new ETag, or
// ErrConflict.
//
// The caller validates e and says who did it (updated_by). Times, url_host and
// the encryption are done here.
func (c *Control) WriteEndpoint(ctx context.Context, e record.Endpoint, expect int64) (int64, error) {
	if err := record.ValidWebhookID(e.ID); err != nil {
		return Absent, err
	}
	if err := c.prepare(&e); err != nil {
		return Absent, fmt.Errorf("writing webhook %s: %w", e.ID, err)
	}
	etag, err := c.swap(ctx, e.ID, e.Marshal(), expect)
	if err != nil {
		return Absent, fmt.Errorf("writing webhook %s: %w", e.ID, err)
	}
	return etag, nil
}

// DeleteEndpoint leaves a tombstone in place of a webhook's configuration, if
// its ETag is still expect; else ErrConflict.
func (c *Control) DeleteEndpoint(ctx context.Context, id string, expect int64) error {
	if err := record.ValidWebhookID(id); err != nil {
		return err
	}
	if _, err := c.swap(ctx, id, nil, expect); err != nil {
		return fmt.Errorf("deleting webhook %s: %w", id, err)
	}
	return nil
}

// prepare fills in what follows from the rest, and seals. It leaves alone what
// e shares with the caller's copy.
func (c *Control) prepare(e *record.Endpoint) error {
	if c.keys == nil {
		return errNoKeys
	}
	now := record.At(time.Now())
	if e.CreatedAt.IsZero() {
		e.CreatedAt = now
	}
	e.UpdatedAt = now
	e.Secrets = slices.Clone(e.Secrets)
	for i := range e.Secrets {
		if e.Secrets[i].CreatedAt.IsZero() {
			e.Secrets[i].CreatedAt = now
		}
	}
	// A URL that is still sealed parses without a host: url_host stays as it was
	// read.
	if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
		e.URLHost = strings.ToLower(u.Host)
	}
	return c.keys.SealEndpoint(e)
}
