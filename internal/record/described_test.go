package record

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/schemas"
)

// The schemas are open, so a header that they don't name passes. Here each of ours has to be named where it is written.
func TestOurHeadersAreDescribed(t *testing.T) {
	d := goldenDelivery(t)
	d.Moved, d.Redrive = &goldenPlace, "run-1/1"
	cut := goldenDeath()
	cut.Limit = Size(d.MinimalDeadLetter("t", 0, goldenDeath())) // some of its own headers have no room
	for name, r := range map[string]*kgo.Record{
		"event-headers":       d.MovedRecord("t", 0),
		"retry-headers":       d.RetryRecord("t", 0),
		"parked-headers":      d.ParkedRecord("t", 0, ParkPaused),
		"dead-letter-headers": d.DeadLetter("t", 0, cut),
	} {
		described := propertiesOf(t, name)
		for _, h := range r.Headers {
			if isOurs(h.Key) && !described[h.Key] {
				t.Errorf("schemas/%s.schema.json says nothing of %s", name, h.Key)
			}
		}
	}
}

// propertiesOf are the names in a schema and in the one that it is built on.
func propertiesOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for file := name + ".schema.json"; file != ""; {
		data, err := schemas.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Ref        string                     `json:"$ref"`
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		for property := range schema.Properties {
			names[property] = true
		}
		file = schema.Ref
	}
	return names
}
