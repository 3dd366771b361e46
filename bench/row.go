package bench

import "math"

// Row is one thing that was measured: what was done, what was seen, and whether
// that is good enough. Every benchmark answers with rows, so that one printer and
// one JSON form serve them all.
type Row struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Figures []Figure `json:"figures"`
	// Passed: every figure is within its bound, and nothing went wrong.
	Passed bool `json:"passed"`
	// Problem is why the figures can't be judged, or are no good whatever they say.
	Problem string `json:"problem,omitempty"`
}

// Figure is a number, and what it must be.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // none: a ratio or a count
	Bound *Bound  `json:"bound,omitempty"`
}

// Bound is what a figure must be; the other side is open.
type Bound struct {
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
}

func atLeast(v float64) *Bound { return &Bound{AtLeast: &v} }
func atMost(v float64) *Bound  { return &Bound{AtMost: &v} }

// OK says whether the figure is within its bound; one without a bound is for
// information. What is no number is never within one.
func (f Figure) OK() bool {
	switch b := f.Bound; {
	case b == nil:
		return true
	case math.IsNaN(f.Value):
		return false
	default:
		return (b.AtLeast == nil || f.Value >= *b.AtLeast) && (b.AtMost == nil || f.Value <= *b.AtMost)
	}
}

// judged sets the verdict.
func (r Row) judged() Row {
	r.Passed = r.Problem == ""
	for _, f := range r.Figures {
		r.Passed = r.Passed && f.OK()
	}
	return r
}

// Passed says whether all rows have.
func Passed(rows []Row) bool {
	for _, r := range rows {
		if !r.Passed {
			return false
		}
	}
	return len(rows) > 0
}
