package chaos_test

import (
	"testing"
	"time"
)

func TestWasAt(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	// The second of the moves may or may not have been made.
	moves := []move{{to: "w/1", asked: at(100), done: at(101)}, {to: "w/2", asked: at(200)}, {to: "w/3", asked: at(300), done: at(301)}}
	for _, c := range []struct {
		path string
		at   int
		want bool
	}{
		{"w", 0, true},
		{"w", 130, true}, // not yet learned
		{"w", 132, false},
		{"w/1", 99, false},
		{"w/1", 100, true},
		{"w/1", 250, true},
		{"w/1", 332, false},
		{"w/2", 199, false},
		{"w/2", 250, true},
		{"w/2", 332, false},
		{"w/3", 299, false},
		{"w/3", 10_000, true},
		{"w/4", 10_000, false},
	} {
		if got := wasAt(moves, "w", c.path, at(c.at)); got != c.want {
			t.Errorf("at %s after %d s: %t", c.path, c.at, got)
		}
	}
}
