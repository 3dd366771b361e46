package dispatcher

import (
	"strings"
	"testing"
)

func TestParseFrom(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "earliest": true, "latest": true, "2026-11-30T12:00:00Z": true, "2026-11-30T12:00:00.5+02:00": true,
		"now": false, "Earliest": false, "-1h": false, "2026-11-30": false, "1764504000": false, " latest": false,
	} {
		f, err := ParseFrom(text)
		if (err == nil) != ok {
			t.Errorf("--from=%s: %v", text, err)
		}
		if err == nil && f.String() != text {
			t.Errorf("--from=%s reads as %q", text, f)
		}
		if err != nil && (!strings.Contains(err.Error(), "--from") || !strings.Contains(err.Error(), "earliest")) {
			t.Errorf("%v: it names neither the flag nor what is allowed", err)
		}
	}
}
