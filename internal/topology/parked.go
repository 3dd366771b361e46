package topology

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Forever is longer than anything lasts.
const Forever time.Duration = math.MaxInt64

// ParkedLife is how long an event may stay in the parked topic before it is moved to the DLQ, by what the cluster says of the topic now: until
// parkedMargin before retention takes it, but at least half of its retention (a shorter one than Verify admits can be set at any time); [Forever]
// without a limit.
func ParkedLife(ctx context.Context, adm *kadm.Client, t *Topology) (time.Duration, error) {
	configs, err := adm.DescribeTopicConfigs(ctx, t.Parked())
	if err != nil {
		return 0, fmt.Errorf("reading the configuration of topic %s: %w%s", t.Parked(), err, authHint(err))
	}
	rc, err := configs.On(t.Parked(), nil)
	if err := errors.Join(err, rc.Err); err != nil {
		return 0, fmt.Errorf("reading the configuration of topic %s: %w%s", t.Parked(), err, authHint(err))
	}
	for _, c := range rc.Configs {
		if c.Key == "retention.ms" {
			return parkedLife(c.MaybeValue()), nil
		}
	}
	return 0, fmt.Errorf("reading the configuration of topic %s: the broker says nothing of its retention.ms", t.Parked())
}

func parkedLife(retention string) time.Duration {
	ms, err := strconv.ParseInt(retention, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return Forever
	}
	d := time.Duration(ms) * time.Millisecond
	return max(d-parkedMargin, d/2)
}
