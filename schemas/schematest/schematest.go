// Package schematest validates records against the schemas, in tests. It is
// apart from package schemas so that the product does not link a validator.
package schematest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/schemas"
)

// base is the $id of the schemas, without the file's name.
const base = "https://github.com/reenvio/reenvio/schemas/"

const suffix = ".schema.json"

// Validate checks JSON against the schema of that name: attempt, state,
// number-state, endpoint, command, result, dead-letter.
func Validate(name string, json []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(json))
	if err != nil {
		return fmt.Errorf("validating against %s: %w", name, err)
	}
	return validate(name, v)
}

// ValidateHeaders checks the headers of a record against the schema of that
// name: event-headers, retry-headers, parked-headers, dead-letter-headers. Of a
// repeated name the last counts, as for Kafka's clients; but headers of ours
// must not repeat.
func ValidateHeaders(name string, headers []kgo.RecordHeader) error {
	object := make(map[string]any, len(headers))
	for _, h := range headers {
		ours := strings.HasPrefix(h.Key, "webhook-") || strings.HasPrefix(h.Key, "__dlq.")
		if _, twice := object[h.Key]; ours && twice {
			return fmt.Errorf("validating against %s: header %s occurs twice", name, h.Key)
		}
		if ours && !utf8.Valid(h.Value) {
			return fmt.Errorf("validating against %s: header %s is no UTF-8", name, h.Key)
		}
		object[h.Key] = string(h.Value)
	}
	return validate(name, object)
}

func validate(name string, v any) error {
	all, err := compiled()
	if err != nil {
		return err
	}
	schema, ok := all[name]
	if !ok {
		return fmt.Errorf("validating against %s: there is no schema of that name", name)
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("validating against %s: %w", name, err)
	}
	return nil
}

// compiled are all schemas, by name. Formats (date-time) are asserted.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	names, err := fs.Glob(schemas.FS, "*"+suffix)
	if err != nil {
		return nil, fmt.Errorf("listing schemas: %w", err)
	}
	for _, name := range names {
		if err := add(c, name); err != nil {
			return nil, fmt.Errorf("reading schema %s: %w", name, err)
		}
	}
	all := make(map[string]*jsonschema.Schema, len(names))
	for _, name := range names {
		schema, err := c.Compile(base + name)
		if err != nil {
			return nil, fmt.Errorf("compiling schema %s: %w", name, err)
		}
		all[strings.TrimSuffix(name, suffix)] = schema
	}
	return all, nil
})

func add(c *jsonschema.Compiler, name string) error {
	data, err := schemas.FS.ReadFile(name)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return c.AddResource(base+name, doc)
}
