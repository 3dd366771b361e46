package dispatcher

import (
	"fmt"
	"testing"
)

func TestSuccesses(t *testing.T) {
	kept := func(s successes) (n int) {
		for i := range 10_000 {
			id := fmt.Sprintf("evt-%d", i)
			first, again := s.keep(id), s.keep(id)
			if first != again {
				t.Fatalf("%s: the same event is kept and not kept", s)
			}
			if first {
				n++
			}
		}
		return n
	}
	if n := kept(successesAll); n != 10_000 {
		t.Errorf("all keeps %d of 10,000", n)
	}
	if n := kept(successesOff); n != 0 {
		t.Errorf("off keeps %d of 10,000", n)
	}
	if n := kept(successesSampled); n < 50 || n > 200 {
		t.Errorf("sampled keeps %d of 10,000, want about 100", n)
	}
	for choice, ok := range map[string]bool{"all": true, "sampled": true, "off": true, "": false, "none": false, "All": false} {
		if err := (Attempts{Successes: choice}).Validate(); (err == nil) != ok {
			t.Errorf("attempts.successes %q: %v", choice, err)
		}
	}
	if err := DefaultAttempts().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}
