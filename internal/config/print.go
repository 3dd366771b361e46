package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Redacted is printed in place of a secret that is set.
const Redacted = "(redacted)"

// Text is the value of a setting as it would be written in the environment; a secret is redacted, a setting that is not set is empty.
func (f Field) Text() string {
	v := f.value
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if f.Secret && !v.IsZero() {
		return Redacted
	}
	switch value := v.Interface().(type) {
	case []string:
		return strings.Join(value, ",")
	case []time.Duration:
		texts := make([]string, len(value))
		for i, d := range value {
			texts[i] = durationText(d)
		}
		return strings.Join(texts, ",")
	case time.Duration:
		return durationText(value)
	default:
		return fmt.Sprint(value)
	}
}

// Tree is the configuration as nested maps for JSON: secrets redacted, durations as Go strings, settings that are not set left out.
func Tree(of any) map[string]any {
	tree := map[string]any{}
	for _, field := range fieldsOf(of).list {
		if field.value.Kind() == reflect.Pointer && field.value.IsNil() {
			continue
		}
		parts := strings.Split(field.Key, delimiter)
		node := tree
		for _, part := range parts[:len(parts)-1] {
			if node[part] == nil {
				node[part] = map[string]any{}
			}
			node = node[part].(map[string]any)
		}
		node[parts[len(parts)-1]] = field.plain()
	}
	return tree
}

// plain is the value for JSON: numbers, booleans and lists of text stay what they are, all else is its text.
func (f Field) plain() any {
	v := reflect.Indirect(f.value)
	switch {
	case f.Secret || v.Type() == durationType || v.Kind() == reflect.String:
		return f.Text()
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			return []string{}
		}
		return strings.Split(f.Text(), ",")
	default:
		return v.Interface()
	}
}

// durationText is Duration.String without its trailing zero units: 1h, not 1h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
