package record

import (
	"encoding/json"
	"fmt"
	"time"
)

// timeLayout is RFC 3339 in UTC with milliseconds, always three digits, so that
// times sort as text.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Time is a point in time as our records carry it: RFC 3339, UTC, milliseconds.
// The zero Time means "absent": fields are tagged omitzero, headers left out.
type Time struct{ time.Time }

// RFC 3339 has four digits for the year. A Kafka timestamp is any int64 of
// milliseconds, set by the producer, so it can lie far outside. The first time is
// one after the zero Time: what was set never becomes absent.
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 1_000_000, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

// At is t as records carry it: in UTC, cut to milliseconds, without a monotonic
// reading, and within the years 1 to 9999. The zero time stays zero.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	t = t.UTC().Truncate(time.Millisecond)
	switch {
	case t.Before(firstTime):
		t = firstTime
	case t.After(lastTime):
		t = lastTime
	}
	return Time{t}
}

// NotBefore is At, rounded up: the form for due times, because a retry never
// leaves before its time, not by a fraction of a millisecond either.
func NotBefore(t time.Time) Time {
	at := At(t)
	if at.Before(t) && at.Before(lastTime) {
		at = At(t.Add(time.Millisecond))
	}
	return at
}

// ParseTime reads any RFC 3339 time, whatever its offset and precision, as CloudEvents
// allow it.
func ParseTime(s string) (Time, error) {
	// The longest sensible text has nanoseconds and an offset: 35 bytes.
	if len(s) > 64 {
		return Time{}, fmt.Errorf("reading time: %d bytes, want RFC 3339 such as %s", len(s), timeLayout)
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Time{}, fmt.Errorf("reading time %q: want RFC 3339 such as 2026-01-02T15:04:05.000Z", s)
	}
	return At(t), nil
}

func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return At(t.Time).Format(timeLayout)
}

// MarshalJSON writes the text of String.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads any RFC 3339 time; null leaves t as it is.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading time: want a string of RFC 3339: %w", err)
	}
	parsed, err := ParseTime(s)
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// Duration is a span of time that is written as Go does ("30s", "1m0s").
type Duration time.Duration

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the text of String.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// UnmarshalJSON reads what time.ParseDuration does; null leaves d as it is. A
// bare number is refused: its unit would be a guess.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading duration %s: want a string with a unit, such as \"30s\"", cut(string(data), 64))
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("reading duration %q: want a number with a unit, such as \"30s\"", cut(s, 64))
	}
	*d = Duration(parsed)
	return nil
}
