package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/dispatcher/delivery"
)

// What an operator or an analyst meets is explained where they look for it.
func TestReasonsAreExplained(t *testing.T) {
	var failures []string
	for _, failure := range delivery.Failures() {
		if failure != delivery.FailureLocal && failure != delivery.FailureCancelled { // no attempt, so nobody meets them
			failures = append(failures, string(failure))
		}
	}
	wantRows(t, "../../docs/operators.md", failures)
	wantRows(t, "../../docs/analysts.md", deathReasons())
}

func wantRows(t *testing.T, page string, names []string) {
	t.Helper()
	text := readPage(t, page)
	for _, name := range names {
		if !strings.Contains(text, "\n| `"+name+"` |") {
			t.Errorf("%s has no row of a table for %s", page, name)
		}
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	servedMetric    = regexp.MustCompile(`(?m)^# TYPE (reenvio_\w+) `)
	explainedMetric = regexp.MustCompile("(?m)^\\| `(reenvio_\\w+)")
)

// wantExplained compares the metrics of a `reenvio dev` with the table in docs/operators.md.
func (d *devRun) wantExplained(t *testing.T, operators string) {
	t.Helper()
	names := func(pattern *regexp.Regexp, text string) []string {
		found := map[string]bool{}
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(match[1], "reenvio_kafka_") { // explained together
				found[match[1]] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
	served, explained := names(servedMetric, d.metricsPage(t)), names(explainedMetric, operators)
	if !slices.Equal(served, explained) {
		t.Errorf("the metrics are\n%s\nbut docs/operators.md explains\n%s", strings.Join(served, "\n"), strings.Join(explained, "\n"))
	}
}
