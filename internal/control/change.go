package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

// changeTries is how often a change meets a newer record before it gives up. Of
// writers at the same webhook one wins each round, so this many at once are served.
const changeTries = 10

// ChangeEndpoint has change alter a webhook's configuration, its values in clear,
// and writes it. If somebody else has written meanwhile, the same change is made to
// the newer record: of two changes to different fields neither is lost. So change
// may be called several times; an error of it ends all.
//
// It returns the configuration before and after, in clear. Nothing is written when
// they are the same.
func (c *Control) ChangeEndpoint(ctx context.Context, id string, change func(*record.Endpoint) error) (before, after record.Endpoint, err error) {
	if c.keys == nil {
		return before, after, fmt.Errorf("changing webhook %s: %w", id, errNoKeys)
	}
	for range changeTries {
		sealed, etag, err := c.GetEndpoint(ctx, id)
		if err != nil {
			return before, after, err
		}
		if before, err = c.keys.OpenEndpoint(sealed); err != nil {
			return before, after, fmt.Errorf("changing webhook %s: %w (%s)", id, err, unopened(id, err))
		}
		after = before.Clone()
		if err := change(&after); err != nil {
			return before, after, err
		}
		if bytes.Equal(before.Marshal(), after.Marshal()) {
			return before, after, nil
		}
		if _, err = c.WriteEndpoint(ctx, after, etag); !errors.Is(err, ErrConflict) {
			return before, after, err
		}
	}
	return before, after, fmt.Errorf("changing webhook %s, tried %d times: %w", id, changeTries, ErrConflict)
}

// unopened is what to do about a webhook whose values don't open.
func unopened(id string, err error) string {
	if secrets.OtherKeyset(err.Error()) {
		return secrets.OtherKeysetStep("this process", id)
	}
	if errors.Is(err, secrets.ErrClear) {
		return "make this change with --secrets.require_encrypted=false: what is written is encrypted"
	}
	return "what no key opens can't be kept: delete the webhook and create it again"
}
