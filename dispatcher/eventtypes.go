package dispatcher

import "fmt"

// maxEventTypes bounds the values of the metric label "type".
const maxEventTypes = 50

// eventTypes are the event types that metrics name; all others count as "other".
type eventTypes map[string]bool

// ValidEventTypes refuses more event types than metrics may name.
func ValidEventTypes(names []string) error {
	if len(names) > maxEventTypes {
		return fmt.Errorf("metrics.event_types has %d entries, but may have at most %d", len(names), maxEventTypes)
	}
	return nil
}

func newEventTypes(names []string) (eventTypes, error) {
	if err := ValidEventTypes(names); err != nil {
		return nil, err
	}
	types := eventTypes{}
	for _, n := range names {
		types[n] = true
	}
	return types, nil
}

func (t eventTypes) label(eventType string) string {
	if t[eventType] {
		return eventType
	}
	return "other"
}
