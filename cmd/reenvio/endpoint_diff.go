package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reenvio/reenvio/internal/record"
)

// fieldChange is a field of an endpoint that is another now, its sensitive values redacted.
type fieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"` // the default where it was not set; absent: there is none
	To    string `json:"to,omitempty"`   // likewise

	row []string // for people
}

// differences are the fields in which two configurations, in clear, differ: by their names in JSON, those of headers and tls one by one.
// What stamps a change is left out.
func differences(before, after record.Endpoint) ([]fieldChange, error) {
	a, err := newFieldTexts(before)
	if err != nil {
		return nil, err
	}
	b, err := newFieldTexts(after)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(a.clear)
	maps.Copy(all, b.clear)
	changes := []fieldChange{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a.clear[name] != b.clear[name] && !slices.Contains([]string{"updated_at", "updated_by", "url_host"}, name) {
			changes = append(changes, fieldChange{name, a.inForce(name), b.inForce(name), []string{name, a.show(name), b.show(name)}})
		}
	}
	return changes, nil
}

// fieldTexts are the fields of a configuration as JSON: as they are, to compare; redacted, to show; and with the defaults filled in.
type fieldTexts struct{ clear, redacted, defaults map[string]string }

func newFieldTexts(e record.Endpoint) (t fieldTexts, err error) {
	if t.clear, err = flatten(e); err != nil {
		return t, err
	}
	hidden := redact(nil, e)
	if t.redacted, err = flatten(hidden); err != nil {
		return t, err
	}
	for _, name := range []string{"tls.ca", "tls.cert"} {
		if pem, ok := t.redacted[name]; ok {
			t.redacted[name] = fmt.Sprintf("(%d bytes of PEM)", len(pem))
		}
	}
	t.defaults, err = flatten(withDefaults(hidden))
	return t, err
}

func (t fieldTexts) inForce(name string) string {
	if text, set := t.redacted[name]; set {
		return text
	}
	return t.defaults[name]
}

func (t fieldTexts) show(name string) string {
	if _, set := t.clear[name]; set {
		return t.redacted[name]
	}
	if text, ok := t.defaults[name]; ok {
		return text + " (default)"
	}
	return "-"
}

// flatten is an endpoint's fields as text, by name; those of objects as name.key.
func flatten(e record.Endpoint) (map[string]string, error) {
	var fields map[string]any
	if err := json.Unmarshal(e.Marshal(), &fields); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			for key, inner := range value {
				texts[name+"."+key] = fieldText(inner)
			}
		case []any:
			parts := make([]string, len(value))
			for i := range value {
				parts[i] = fieldText(value[i])
			}
			texts[name] = strings.Join(parts, ", ")
		default:
			texts[name] = fieldText(value)
		}
	}
	return texts, nil
}

func fieldText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any: // a secret: what matters is its value
		if value, ok := v["value"].(string); ok {
			return value
		}
	}
	data, _ := json.Marshal(v) // it came from JSON
	return string(data)
}
