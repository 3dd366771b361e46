package bench

import (
	"testing"
	"time"
)

// tiny is the whole of it in small: what it counts must be right, what it measures says
// nothing.
func tiny() IsolationOptions {
	return IsolationOptions{
		Webhooks: 10, Disturbed: 2, Flood: 3_000, Share: 0.05, Rounds: 1,
		Warm: 50 * time.Millisecond, Measure: 200 * time.Millisecond, Grace: time.Minute, Patience: time.Minute,
		Progress: func(string, ...any) {},
	}
}

// In each way to be bad the others get all that is sent to them.
func TestEachBadness(t *testing.T) {
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, b := range append([]badness{healthy}, badnesses...) {
		t.Run(b.name, func(t *testing.T) {
			o := tiny()
			l := newLoad(o.Webhooks, o.Disturbed, 400, 100)
			if err := o.run(t.Context(), w, b, l); err != nil {
				t.Fatal(err)
			}
			good, bad := 0, 0
			for i := range l.cameAt {
				switch came := l.cameAt[i].Load() > 0; {
				case came && l.good(i):
					good++
				case came:
					bad++
				}
			}
			if good != 80 {
				t.Errorf("%d of 80 events came to those that are well", good)
			}
			if isWell := b.name == healthy.name || b.flood; bad > 0 != isWell {
				t.Errorf("%d events came to those that are bad", bad)
			}
		})
	}
}

func TestIsolationRows(t *testing.T) {
	o := tiny()
	o.Bad = []string{"error", "refuse"}
	rows, err := Isolation(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
		for _, f := range r.Figures {
			if f.Name == "events not delivered" && f.Value != 0 {
				t.Errorf("%s: %v events are missing", r.Name, f.Value)
			}
		}
	}
	if len(names) != 3 || names[0] != "capacity" || names[1] != "refuse" || names[2] != "error" {
		t.Errorf("rows %q", names)
	}
	o.Bad = []string{"errors"}
	if _, err := Isolation(t.Context(), o); err == nil {
		t.Error("a badness that there is not was accepted")
	}
}
