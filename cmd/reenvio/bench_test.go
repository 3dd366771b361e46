package main

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/reenvio/reenvio/bench"
)

func TestBenchReport(t *testing.T) {
	half, one := 0.5, 1.0
	good := bench.Row{Name: "good", About: "this was done", Passed: true, Figures: []bench.Figure{
		{Name: "share", Value: 0.94321, Bound: &bench.Bound{AtLeast: &half}},
		{Name: "took", Value: 31.25, Unit: "ms"},
		{Name: "events", Value: 12000},
	}}
	bad := bench.Row{Name: "bad", About: "that was done", Problem: "it rained", Figures: []bench.Figure{{Name: "share", Value: 150.7, Unit: "s", Bound: &bench.Bound{AtMost: &one}}}}
	for _, tt := range []struct {
		rows   []bench.Row
		failed bool
		want   string
	}{
		{[]bench.Row{good}, false, `ROW   FIGURE  VALUE    BOUND   VERDICT
good  share   0.94     >= 0.5  ok
good  took    31.2 ms          
good  events  12000            

good: this was done.
`},
		{[]bench.Row{good, bad}, true, `ROW   FIGURE  VALUE    BOUND   VERDICT
good  share   0.94     >= 0.5  ok
good  took    31.2 ms          
good  events  12000            
bad   share   151 s    <= 1 s  FAILED

good: this was done.
bad: that was done.
bad: it rained.
`},
	} {
		var out bytes.Buffer
		err := (&cli{stdout: &out}).printBench(tt.rows, formatTable)
		if errors.Is(err, errNotDone) != tt.failed || out.String() != tt.want {
			t.Errorf("%v\n%s", err, &out)
		}
		out.Reset()
		err = (&cli{stdout: &out}).printBench(tt.rows, formatJSON)
		report := outcome{out: out.String()}.object(t)
		rows, _ := report["rows"].([]any)
		if errors.Is(err, errNotDone) != tt.failed || report["passed"] == tt.failed || len(rows) != len(tt.rows) || report["cores"] == nil {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}

func TestBenchOffersItsWaysToBeBad(t *testing.T) {
	s := newShell(t)
	if got := s.completions(t, "bench", "isolation", "--bad", ""); !slices.Equal(got, bench.Badnesses()) {
		t.Errorf("got %q", got)
	}
	o := s.run(t, "help", "bench", "isolation").wantCode(t, exitOK)
	for _, name := range bench.Badnesses() {
		o.wantOut(t, "  "+name)
	}
}
