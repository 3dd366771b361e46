package bench

import (
	"math"
	"testing"
	"time"
)

func TestFigureOK(t *testing.T) {
	for _, tt := range []struct {
		value float64
		bound *Bound
		want  bool
	}{
		{1e9, nil, true},
		{math.NaN(), nil, true},
		{0.95, atLeast(0.95), true},
		{0.9499, atLeast(0.95), false},
		{1.5, atMost(1.5), true},
		{1.5001, atMost(1.5), false},
		{math.NaN(), atMost(1.5), false},
		{math.Inf(1), atLeast(1), true},
	} {
		if got := (Figure{Value: tt.value, Bound: tt.bound}).OK(); got != tt.want {
			t.Errorf("%v within %+v: %v", tt.value, tt.bound, got)
		}
	}
}

func TestPassed(t *testing.T) {
	good := Row{Figures: []Figure{{Value: 1, Bound: atMost(1)}, {Value: 7}}}.judged()
	bad := Row{Figures: []Figure{{Value: 2, Bound: atMost(1)}, {Value: 7}}}.judged()
	unsure := Row{Problem: "the machine has other work"}.judged()
	if !good.Passed || bad.Passed || unsure.Passed {
		t.Errorf("good %v, bad %v, unsure %v", good.Passed, bad.Passed, unsure.Passed)
	}
	if !Passed([]Row{good, good}) || Passed([]Row{good, bad}) || Passed(nil) {
		t.Error("rows together")
	}
}

// The verdict is that of the medians, and one phase that the machine has spoilt, of
// whichever kind, changes none.
func TestVerdict(t *testing.T) {
	ms := time.Millisecond
	phases := func(all ...sample) []sample { return all }
	at := func(rate float64, p99 time.Duration) sample { return sample{due: 900, rate: rate, p99: p99} }
	quiet := phases(at(900, 20*ms), at(880, 10*ms), at(910, 900*ms))
	o := IsolationDefaults()
	for _, tt := range []struct {
		name      string
		disturbed []sample
		busy      bool
		passed    bool
		problem   bool
	}{
		{"as undisturbed", phases(at(900, 20*ms)), false, true, false},
		{"at the bounds", phases(at(855, 30*ms)), false, true, false},
		{"too slow", phases(at(900, 31*ms)), false, false, false},
		{"too few", phases(at(850, 20*ms)), false, false, false},
		{"one bad round of three", phases(at(900, 20*ms), at(100, 900*ms), at(900, 30*ms)), false, true, false},
		{"two bad rounds of three", phases(at(900, 20*ms), at(100, 900*ms), at(800, 40*ms)), false, false, false},
		{"the machine is busy", phases(at(900, 20*ms)), true, false, true},
		{"an event is missing", phases(at(900, 20*ms), sample{due: 900, rate: 900, p99: 20 * ms, missing: 1}, at(900, 20*ms)), false, false, false},
		{"nothing was measured", nil, false, false, false},
	} {
		undisturbed := quiet
		if tt.busy {
			undisturbed = phases(at(800, 20*ms))
		}
		r := o.row(badnesses[0], tt.disturbed, undisturbed)
		if r.Passed != tt.passed || (r.Problem != "") != tt.problem {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}
