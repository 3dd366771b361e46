package dispatcher

import (
	"fmt"
	"testing"
)

func TestEventTypes(t *testing.T) {
	var names []string
	for i := range maxEventTypes {
		names = append(names, fmt.Sprintf("type.%d", i))
	}
	types, err := newEventTypes(names)
	if err != nil {
		t.Fatal(err)
	}
	for eventType, want := range map[string]string{
		"type.0": "type.0", "type.49": "type.49", "type.50": "other", "": "other", "TYPE.0": "other", "other": "other",
	} {
		if got := types.label(eventType); got != want {
			t.Errorf("type %q counts as %q, want %q", eventType, got, want)
		}
	}
	if _, err := newEventTypes(append(names, "one more")); err == nil {
		t.Errorf("%d types are accepted: a label could have any number of values", len(names)+1)
	}
}
