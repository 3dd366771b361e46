package record

import "encoding/json"

// readEnvelope reads the attributes of a structured CloudEvent from its JSON.
// What the envelope holds wins over a header of the same meaning. An envelope
// that is not JSON is sent as it lies, like any other value: it is for its
// receiver to judge.
func (e *Event) readEnvelope() {
	// A map, because field names of a struct match in any case: "ID" is not "id".
	var envelope map[string]json.RawMessage
	if json.Unmarshal(e.Value, &envelope) != nil {
		return
	}
	set := func(name string, to *string) {
		raw, ok := envelope[name]
		if !ok || string(raw) == "null" {
			return
		}
		// An attribute that is no string is kept as its JSON text: an id of 7 is
		// legal enough to be told apart by.
		if json.Unmarshal(raw, to) != nil {
			*to = string(raw)
		}
	}
	setTime := func(name string, to *Time) {
		var s string
		set(name, &s)
		if t, err := ParseTime(s); err == nil {
			*to = t
		}
	}
	set("id", &e.ID)
	set("type", &e.Type)
	set("source", &e.CESource)
	set("partitionkey", &e.PartitionKey)
	set("traceparent", &e.Traceparent)
	setTime("time", &e.Time)
	setTime("expirytime", &e.Expiry)
}
