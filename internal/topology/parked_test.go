package topology

import (
	"testing"
	"time"
)

func TestParkedLife(t *testing.T) {
	for retention, want := range map[string]time.Duration{
		"1209600000":          13 * day, // the default
		"172800000":           day,
		"172799998":           day - time.Millisecond, // below two days: half
		"90000000":            12*time.Hour + 30*time.Minute,
		"1000":                500 * time.Millisecond,
		"-1":                  Forever,
		"9223372036854775807": Forever,
	} {
		if got := parkedLife(retention); got != want {
			t.Errorf("retention.ms=%s: %s, want %s", retention, got, want)
		}
	}
}
