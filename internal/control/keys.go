package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/reenvio/reenvio/internal/secrets"
)

// CheckKeyset refuses a keyset that none of the other webhooks was written with:
// dispatchers have another one then, and what this one seals would be dead from
// birth. The first webhook has nothing to compare with.
func (c *Control) CheckKeyset(ctx context.Context, webhook string) error {
	if c.keys == nil {
		return errNoKeys
	}
	all, err := c.ListEndpoints(ctx)
	if err != nil {
		return err
	}
	others := 0
	for _, e := range all {
		ids := secrets.KeyIDs(e.Endpoint)
		switch {
		case e.ID == webhook, len(ids) == 0: // also those that can't be read, or lie in clear
		case slices.ContainsFunc(ids, c.keys.Has):
			return nil
		default:
			others++
		}
	}
	if others == 0 {
		return nil
	}
	return fmt.Errorf("webhook %s is not written: this keyset has none of the keys that the other webhooks (%d) were written with, and a dispatcher that can read those can't read this one: "+
		"use the keyset that the dispatchers have (secrets.keyset_file, secrets.keyset); only if that is lost: delete those webhooks first", webhook, others)
}
