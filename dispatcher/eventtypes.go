package dispatcher

import "fmt"

// maxEventTypes bounds the values of the metric label "type".
const maxEventTypes = 50

// eventTypes are the event types that metrics name; all others count as "other".
type eventTypes map[string]bool

func newEventTypes(names []string) (eventTypes, error) {
	if len(names) > maxEventTypes {
		return nil, fmt.Errorf("metrics.event_types has %d entries, but may have at most %d", len(names), maxEventTypes)
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
