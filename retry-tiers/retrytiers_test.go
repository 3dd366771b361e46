package retrytiers

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var randoms = []float64{0, 1e-12, 0.5, math.Nextafter(1, 0)}

func TestDefaultDelays(t *testing.T) {
	s := NewSchedule(Defaults())
	for attempt, want := range []time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 3: 8 * time.Second, 4: 16 * time.Second, 11: 2048 * time.Second, 12: time.Hour, 40: time.Hour} {
		if want == 0 {
			continue
		}
		if got := s.Delay(attempt, Policy{}, 0); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
		if got := s.Delay(attempt, Policy{}, 0.5); got != want+want/20 {
			t.Errorf("after attempt %d, half the jitter: %v, want 5%% more than %v", attempt, got, want)
		}
		full := Policy{Jitter: Full}
		if low, mid := s.Delay(attempt, full, 0), s.Delay(attempt, full, 0.5); low != Floor || mid != (Floor+want)/2 {
			t.Errorf("after attempt %d, full jitter: %v and %v, want %v and half of %v", attempt, low, mid, Floor, want)
		}
	}
}

// Every attempt number from 0 to a million, in each policy: above 0, within the bound, ceilings that don't fall.
func TestDelayOfAnyAttempt(t *testing.T) {
	for _, c := range []Config{Defaults(), {JitterRatio: 1, MaxDelay: Longest}, {MaxDelay: Floor}} {
		s := NewSchedule(c)
		bound := c.MaxDelay + time.Duration(c.JitterRatio*float64(c.MaxDelay))
		for _, jitter := range []Jitter{"", Additive, Full} {
			p := Policy{Jitter: jitter}
			before := time.Duration(0)
			for attempt := range 1_000_001 {
				ceiling := s.Ceiling(attempt, p)
				if ceiling < before || ceiling > bound {
					t.Fatalf("%+v %q attempt %d: ceiling %v after %v, bound %v", c, jitter, attempt, ceiling, before, bound)
				}
				before = ceiling
				for _, random := range randoms {
					if d := s.Delay(attempt, p, random); d <= 0 || d > ceiling {
						t.Fatalf("%+v %q attempt %d random %v: %v, ceiling %v", c, jitter, attempt, random, d, ceiling)
					}
				}
			}
		}
	}
}

func TestDelayProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			JitterRatio: rapid.Float64Range(0, 1).Draw(t, "ratio"),
			MaxDelay:    time.Duration(rapid.Int64Range(int64(Floor), int64(Longest)).Draw(t, "max_delay")),
		}
		p := Policy{
			Schedule: rapid.SliceOf(rapid.Map(rapid.Int64(), func(d int64) time.Duration { return time.Duration(d) })).Draw(t, "schedule"),
			Jitter:   rapid.SampledFrom([]Jitter{"", Additive, Full}).Draw(t, "jitter"),
		}
		s := NewSchedule(c)
		attempt := rapid.OneOf(rapid.IntRange(0, 60), rapid.Int()).Draw(t, "attempt")
		longest := c.MaxDelay
		if len(p.Schedule) > 0 {
			longest = Longest
		}
		bound := longest + time.Duration(c.JitterRatio*float64(longest))
		ceiling := s.Ceiling(attempt, p)
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		low, high := s.Delay(attempt, p, min(a, b)), s.Delay(attempt, p, max(a, b))
		if low <= 0 || low > high || high > ceiling || ceiling > bound {
			t.Fatalf("0 < %v <= %v <= %v <= %v does not hold", low, high, ceiling, bound)
		}
	})
}

func TestOwnSchedule(t *testing.T) {
	s := NewSchedule(Config{MaxDelay: time.Minute})
	p := Policy{Schedule: []time.Duration{time.Second, 30 * time.Hour, time.Second / 4}}
	for attempt, want := range []time.Duration{time.Second, time.Second, 30 * time.Hour, Floor, Floor} {
		if got := s.Delay(attempt, p, 0); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
	}
}

func TestClamp(t *testing.T) {
	produced := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ due, want time.Duration }{
		{-time.Hour, 0}, {0, 0}, {time.Second, time.Second}, {9 * time.Second, 9 * time.Second}, {10 * time.Second, 9 * time.Second},
	} {
		if got := Clamp(produced.Add(c.due), produced, 9*time.Second).Sub(produced); got != c.want {
			t.Errorf("due %v after it was produced: %v, want %v", c.due, got, c.want)
		}
	}
	if got := Clamp(time.Time{}, produced, time.Hour); !got.Equal(produced) {
		t.Errorf("no due time: %v, want at once", got)
	}
	if got := Clamp(time.Unix(1<<60, 0), produced, time.Hour); !got.Equal(produced.Add(time.Hour)) {
		t.Errorf("a due time in 3e10 years: %v", got)
	}
}

func TestTier(t *testing.T) {
	l := NewLine([]time.Duration{8 * time.Second, 2 * time.Second, 16 * time.Second, 4 * time.Second})
	for wait, want := range map[time.Duration]time.Duration{
		-time.Second: 2 * time.Second, 0: 2 * time.Second, time.Second: 2 * time.Second,
		2 * time.Second: 2 * time.Second, 4*time.Second - 1: 2 * time.Second, 4 * time.Second: 4 * time.Second,
		15 * time.Second: 8 * time.Second, 16 * time.Second: 16 * time.Second, time.Hour: 16 * time.Second,
	} {
		if got := l.Tier(wait); got != want {
			t.Errorf("a wait of %v: tier %v, want %v", wait, got, want)
		}
	}
}

// journey follows a record through its hops, each of them committed a little late, and returns the number of records.
func journey(l *Line, wait, late time.Duration) (records int, left time.Time) {
	start := time.Unix(1_800_000_000, 0)
	due, now := start.Add(wait), start
	for {
		records++
		at, hop := l.Leave(l.Tier(due.Sub(now)), now, due)
		if !hop {
			return records, at
		}
		now = at.Add(late)
	}
}

func TestHops(t *testing.T) {
	l := NewLine([]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second})
	for wait, want := range map[time.Duration]int{
		time.Second: 1, 16 * time.Second: 1, 32*time.Second - 1: 1, 32 * time.Second: 2, 128 * time.Second: 8,
		time.Duration(1.1 * 128 * float64(time.Second)): 8, 256 * time.Second: 16,
	} {
		if got, _ := journey(l, wait, 0); got != want {
			t.Errorf("a wait of %v: %d records, want %d", wait, got, want)
		}
	}
}

func TestJourneyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.SliceOfNDistinct(rapid.Int64Range(1, 3600), 1, 6, rapid.ID).Draw(t, "tiers")
		var tiers []time.Duration
		for _, s := range seconds {
			tiers = append(tiers, time.Duration(s)*time.Second)
		}
		l := NewLine(tiers)
		wait := time.Duration(rapid.Int64Range(0, 8*int64(slices.Max(tiers))).Draw(t, "wait"))
		late := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "late"))
		records, left := journey(l, wait, late)
		if due := time.Unix(1_800_000_000, 0).Add(wait); !left.Equal(due) {
			t.Fatalf("left %v from its due time", left.Sub(due))
		}
		if most := max(1, int(wait/slices.Max(tiers))); records > most {
			t.Fatalf("%d records, at most %d", records, most)
		}
	})
}

// A record in a topic whose tier is no longer configured, or too short for its wait by now, is led on.
func TestLeaveOtherTiers(t *testing.T) {
	l := NewLine([]time.Duration{2 * time.Second, 10 * time.Second})
	produced := time.Unix(1_800_000_000, 0)
	if at, hop := l.Leave(time.Hour, produced, produced.Add(65*time.Minute)); !hop || !at.Equal(produced.Add(time.Hour)) {
		t.Errorf("out of a tier of 1h: %v %v", at, hop)
	}
	if at, hop := l.Leave(time.Hour, produced, produced.Add(time.Minute)); hop || !at.Equal(produced.Add(time.Minute)) {
		t.Errorf("due before the tier's time: %v %v", at, hop)
	}
	if at, hop := l.Leave(2*time.Second, produced, produced.Add(time.Minute)); !hop || !at.Equal(produced.Add(2*time.Second)) {
		t.Errorf("out of a tier that is too short: %v %v", at, hop)
	}
}

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	tiers, err := Config{Tiers: []string{"1m", "2s", "1h30m"}}.Durations()
	if want := []time.Duration{2 * time.Second, time.Minute, 90 * time.Minute}; err != nil || !slices.Equal(tiers, want) {
		t.Errorf("tiers %v %v, want %v", tiers, err, want)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no tier":         {func(c *Config) { c.Tiers = nil }, "retry.tiers"},
		"no duration":     {func(c *Config) { c.Tiers = []string{"soon"} }, "retry.tiers"},
		"other name":      {func(c *Config) { c.Tiers = []string{"60s"} }, "1m"},
		"twice":           {func(c *Config) { c.Tiers = []string{"2s", "2s"} }, "twice"},
		"negative jitter": {func(c *Config) { c.JitterRatio = -0.1 }, "retry.jitter_ratio"},
		"much jitter":     {func(c *Config) { c.JitterRatio = 1.1 }, "retry.jitter_ratio"},
		"no number":       {func(c *Config) { c.JitterRatio = math.NaN() }, "retry.jitter_ratio"},
		"short":           {func(c *Config) { c.MaxDelay = Floor - 1 }, "retry.max_delay"},
		"long":            {func(c *Config) { c.MaxDelay = Longest + 1 }, "retry.max_delay"},
	} {
		cfg := Defaults()
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that names %s", name, err, c.says)
		}
	}
}
