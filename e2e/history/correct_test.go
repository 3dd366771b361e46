package history_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/reenvio/reenvio/e2e/history"
)

func drawer(t *rapid.T) func(string, int) int {
	return func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
}

func TestCorrectHistoriesPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := simulate(drawer(t))
		if err := history.Check(h).Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEmptyHistoryPasses(t *testing.T) {
	report := history.Check(history.History{Final: true})
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	if report.Lateness != (history.Distribution{}) {
		t.Fatalf("lateness of nothing: %+v", report.Lateness)
	}
}
