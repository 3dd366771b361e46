package producer

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The example of the specification: 1469918176385 is 01ARYZ6S41.
func TestULIDOfTheSpecification(t *testing.T) {
	id := newID(time.UnixMilli(1469918176385))
	if len(id) != 26 || !strings.HasPrefix(id, "01ARYZ6S41") {
		t.Errorf("got %s", id)
	}
}

func TestULIDsSortByTimeAndDiffer(t *testing.T) {
	at := rapid.Int64Range(0, 1<<48-1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := at.Draw(t, "a"), at.Draw(t, "b")
		first, second := newID(time.UnixMilli(min(a, b))), newID(time.UnixMilli(max(a, b)))
		if len(first) != 26 || len(second) != 26 || first == second || a != b && first > second {
			t.Errorf("got %s and %s", first, second)
		}
	})
}
