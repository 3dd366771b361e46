package schematest

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/schemas"
)

func TestAllSchemasCompile(t *testing.T) {
	all, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"attempt", "state", "number-state", "endpoint", "command", "result", "dead-letter",
		"event-headers", "retry-headers", "parked-headers", "dead-letter-headers",
	} {
		if all[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	for name, schema := range all {
		if want := base + name + suffix; strings.TrimSuffix(schema.Location, "#") != want {
			t.Errorf("%s has the $id %s, want %s", name, schema.Location, want)
		}
	}
}

func TestGoldenIsEmbedded(t *testing.T) {
	for _, name := range []string{
		"event.json", "retry.json", "parked.json", "dead-letter.json", "attempt.json", "state.json", "number-state.json",
		"endpoint.json", "command.json", "result.json", "delivered.bin",
	} {
		if data, err := fs.ReadFile(schemas.FS, "golden/"+name); err != nil || len(data) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each golden JSON record, changed in one place, is refused: the schemas say something.
func TestSchemasRefuse(t *testing.T) {
	for _, c := range []struct{ schema, file, from, to string }{
		{"attempt", "attempt.json", `"outcome":"failed"`, `"outcome":"delivered"`}, // with next: retry
		{"attempt", "attempt.json", `"outcome":"failed"`, `"outcome":"maybe"`},
		{"attempt", "attempt.json", `"attempt":2`, `"attempt":0`},
		{"attempt", "attempt.json", `"status":503`, `"status":"503"`},
		{"attempt", "attempt.json", `.250Z"`, `Z"`},
		{"attempt", "attempt.json", `"event_id"`, `"eventId"`},
		{"state", "state.json", `"pause_reasons"`, `"pauseReasons"`},
		{"state", "state.json", `webhooks.events/3/1042`, `webhooks.events/3/01042`},
		{"state", "state.json", `"webhook":"crm.orders"`, `"webhook":"#number"`},
		{"number-state", "number-state.json", `"scope":"tenant"`, `"scope":"moon"`},
		{"endpoint", "endpoint.json", `"timeout":"30s"`, `"timeout":30`},
		{"endpoint", "endpoint.json", `"ordering":"key"`, `"ordering":"strict"`}, // with max_in_flight: 4
		{"endpoint", "endpoint.json", `"max_attempts":5`, `"max_attempts":51`},
		{"command", "command.json", `"kind":"command"`, `"kind":"result"`},
		{"command", "command-number.json", `"scope"`, `"reach"`},
		{"command", "command.json", `"cmd_1"`, `"` + strings.Repeat("x", 257) + `"`},
		{"command", "command-number.json", `,"value":"acme"`, ""},
		{"command", "command-number.json", `"acme"`, `""`},
		{"command", "command-skip.json", `webhooks.events/3/1042`, `order-1`},
		{"result", "result.json", `"result":"done"`, `"result":"ok"`},
		{"dead-letter", "dead-letter-view.json", `"webhook_attempt":2`, `"webhook_attempt":"2"`},
		{"dead-letter", "dead-letter-view.json", `attempts_exhausted`, `bored`},
	} {
		data, err := fs.ReadFile(schemas.FS, "golden/"+c.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(c.schema, data); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		changed := strings.Replace(string(data), c.from, c.to, 1)
		if changed == string(data) {
			t.Errorf("%s has no %s", c.file, c.from)
		}
		if err := Validate(c.schema, []byte(changed)); err == nil {
			t.Errorf("%s with %s passes", c.file, c.to)
		}
	}
	for _, c := range []struct {
		schema string
		header kgo.RecordHeader
	}{
		{"event-headers", kgo.RecordHeader{Key: "ce_id", Value: []byte("a b")}},
		{"event-headers", kgo.RecordHeader{Key: "ce_time", Value: []byte("noon")}},
		{"event-headers", kgo.RecordHeader{Key: "webhook-moved", Value: []byte("a/b/c")}},
		{"event-headers", kgo.RecordHeader{Key: "webhook-redrive", Value: []byte("\xff")}},
		{"retry-headers", kgo.RecordHeader{Key: "webhook-attempt", Value: []byte("1")}}, // the others are missing
		{"parked-headers", kgo.RecordHeader{}},
		{"dead-letter-headers", kgo.RecordHeader{}},
		{"no-such", kgo.RecordHeader{}},
	} {
		if err := ValidateHeaders(c.schema, []kgo.RecordHeader{c.header}); err == nil {
			t.Errorf("%s takes %v", c.schema, c.header)
		}
	}
	twice := []kgo.RecordHeader{{Key: "webhook-redrive", Value: []byte("r/1")}, {Key: "webhook-redrive", Value: []byte("r/1")}}
	if err := ValidateHeaders("event-headers", twice); err == nil {
		t.Error("a stacked header of ours passes")
	}
	if err := Validate("state", []byte("{")); err == nil {
		t.Error("broken JSON passes")
	}
}
