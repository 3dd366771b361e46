package topology

import (
	"fmt"
	"strings"
	"time"
)

// retryRetention is how long a retry topic keeps a record.
const retryRetention = 7 * day

const day = 24 * time.Hour

// maxTier leaves a record as much time again to be picked up when nobody runs at its due time.
const maxTier = retryRetention / 2

// maxDedupWindow: the ids of the window are kept twice as long, and all of them in memory.
const maxDedupWindow = 7 * day

// ParseTier reads a tier as it is written in the configuration and in a topic's name. A duration has exactly one name ("60s" is refused, the name
// is "1m"), else two members could write the same tier into two topics.
func ParseTier(s string) (time.Duration, error) {
	tier, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("reading tier %q: not a duration such as 2s, 1m or 1h30m", s)
	}
	if err := checkTier(tier); err != nil {
		return 0, err
	}
	if name := TierName(tier); name != s {
		return 0, fmt.Errorf("tier %q must be written %q", s, name)
	}
	return tier, nil
}

// checkTier admits whole seconds, and below one second whole milliseconds: a name with a fraction would put a dot into the topic's name.
func checkTier(tier time.Duration) error {
	unit := time.Second
	if tier < time.Second {
		unit = time.Millisecond
	}
	switch {
	case tier <= 0:
		return fmt.Errorf("tier %s in retry.tiers: it must be longer than 0", tier)
	case tier%unit != 0:
		return fmt.Errorf("tier %s in retry.tiers: it must be a whole number of seconds, or of milliseconds below one second", tier)
	case tier > maxTier:
		return fmt.Errorf("tier %s in retry.tiers: it must be at most %s, half of the %s that a retry topic keeps a record",
			TierName(tier), TierName(maxTier), TierName(retryRetention))
	}
	return nil
}

// TierName is the one name of a tier: Go's, without the units that are zero at its end ("1m", not "1m0s").
func TierName(tier time.Duration) string {
	s := tier.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
