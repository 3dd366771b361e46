package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// encode is json.Marshal without the escapes for HTML: URLs stay readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// mustEncode is for values of our own types, which can always be written; only a
// programming error (a rate of NaN, an Extra that is no JSON) can't.
func mustEncode(v any) []byte {
	data, err := encode(v)
	if err != nil {
		panic(fmt.Sprintf("record: writing %T: %v", v, err))
	}
	return data
}

// Fields are the fields of a JSON object that this build does not know, by name.
// They were written by a newer one, and are written again with the record.
type Fields map[string]json.RawMessage

// encodeKeeping writes plain, a struct, and behind its fields the unknown ones, sorted.
func encodeKeeping(plain any, extra Fields) ([]byte, error) {
	data, err := encode(plain)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	known := knownFields(reflect.TypeOf(plain))
	b := bytes.NewBuffer(bytes.TrimSuffix(data, []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if known[name] {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := encode(name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// decodeKeeping reads data into plain, a pointer to a struct, and returns the
// fields that it has no place for. Names match exactly: encoding/json alone would
// take "STATUS" for "status", and the field would be written twice.
func decodeKeeping(data []byte, plain any) (Fields, error) {
	var all Fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errors.New("the value is null, want an object")
	}
	known := knownFields(reflect.TypeOf(plain).Elem())
	var extra Fields
	for name, value := range all {
		if !known[name] {
			if extra == nil {
				extra = Fields{}
			}
			extra[name] = value
			delete(all, name)
		}
	}
	if extra != nil {
		var err error
		if data, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	return extra, json.Unmarshal(data, plain)
}

var fieldsOf sync.Map // reflect.Type to map[string]bool

// knownFields are the JSON names of a flat struct's fields.
func knownFields(t reflect.Type) map[string]bool {
	if known, ok := fieldsOf.Load(t); ok {
		return known.(map[string]bool)
	}
	known := make(map[string]bool, t.NumField())
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			known[name] = true
		}
	}
	fieldsOf.Store(t, known)
	return known
}
