package overview

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Orphaned says whether a number has no owner, and is not being given one at this moment.
func Orphaned(ctx context.Context, o Options, number int32) (bool, error) {
	r := &reader{Options: o, admin: kadm.NewClient(o.Client), topo: o.Topology}
	g, err := r.describe(ctx)
	if err != nil {
		return false, err
	}
	_, owned := g.owner(number)
	return !owned && !g.moving(), nil
}
