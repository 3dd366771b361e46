package topology

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTierNamesTheCanonicalForm(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"2s": 2 * time.Second, "16s": 16 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute,
		"1h": time.Hour, "1h0m5s": time.Hour + 5*time.Second, "1h30m": 90 * time.Minute, "24h": day, "500ms": 500 * time.Millisecond, "84h": maxTier,
	} {
		if got, err := ParseTier(s); err != nil || got != want {
			t.Errorf("ParseTier(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for s, hint := range map[string]string{
		"60s": `"1m"`, "1m0s": `"1m"`, "120m": `"2h"`, "90s": `"1m30s"`, "1000ms": `"1s"`, "0.5s": `"500ms"`, "+2s": `"2s"`, "02s": `"2s"`,
		"": "not a duration", "2": "not a duration", "1d": "not a duration",
		"0s": "longer than 0", "-2s": "longer than 0",
		"1.5s": "whole number of seconds", "1500ms": "whole number of seconds", "1h0.5s": "whole number of seconds", "1500us": "of milliseconds",
		"84h1s": "at most 84h", "168h": "at most 84h", "2562047h": "at most 84h",
	} {
		if got, err := ParseTier(s); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseTier(%q) = %v, %v, want an error with %s", s, got, err, hint)
		}
	}
}

func TestTierHasOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tier := rapid.OneOf(
			rapid.Map(rapid.Int64Range(1, 999), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }),
			rapid.Map(rapid.Int64Range(1, int64(maxTier/time.Second)), func(s int64) time.Duration { return time.Duration(s) * time.Second }),
		).Draw(t, "tier")
		name := TierName(tier)
		if got, err := ParseTier(name); err != nil || got != tier {
			t.Fatalf("ParseTier(TierName(%v)) = %v, %v", tier, got, err)
		}
		if strings.Trim(name, "0123456789hms") != "" {
			t.Fatalf("TierName(%v) = %q: not fit for a topic's name", tier, name)
		}
		if other := tier.String(); other != name {
			if _, err := ParseTier(other); err == nil {
				t.Fatalf("%q and %q both name %v", other, name, tier)
			}
		}
	})
}
