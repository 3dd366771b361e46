package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Field is one setting of a configuration struct.
type Field struct {
	Key     string // kafka.tls.ca_file
	Doc     string // one or two sentences for people
	Default string // the text of the tag default; empty when the value itself is the default
	Secret  bool   // the value is never printed
	value   reflect.Value
}

// fields are all settings of a configuration struct, in the order of the struct.
type fields struct {
	list     []Field
	byKey    map[string]Field
	sections map[string]bool
}

// fieldsOf walks a pointer to a struct. A field without a koanf tag, or with "-", is no setting. What it finds wrong is a mistake in
// the program, so it panics.
func fieldsOf(of any) fields {
	v := reflect.ValueOf(of)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: want a pointer to a struct, got %T", of))
	}
	found := fields{byKey: map[string]Field{}, sections: map[string]bool{}}
	found.walk(v.Elem(), "")
	return found
}

func (f *fields) walk(v reflect.Value, prefix string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("koanf"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		key := prefix + tag
		if field.Type.Kind() == reflect.Struct {
			f.sections[key] = true
			f.walk(v.Field(i), key+delimiter)
			continue
		}
		if kindOf(field.Type) == "" {
			panic(fmt.Sprintf("config: %s has the type %s, which no setting can have", key, field.Type))
		}
		if _, twice := f.byKey[key]; twice {
			panic(fmt.Sprintf("config: two fields have the key %s", key))
		}
		found := Field{Key: key, Doc: field.Tag.Get("doc"), Default: field.Tag.Get("default"), Secret: field.Tag.Get("secret") == "true", value: v.Field(i)}
		f.list = append(f.list, found)
		f.byKey[key] = found
	}
}

// Fields lists the settings of a pointer to a struct in its order.
func Fields(of any) []Field { return fieldsOf(of).list }

var durationType = reflect.TypeFor[time.Duration]()

// Kind names the type of a setting for people: text, true or false, number, duration, list, list of durations.
func (f Field) Kind() string { return kindOf(f.value.Type()) }

func kindOf(t reflect.Type) string {
	if t == durationType {
		return "duration"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Pointer: // "not set" is a value of its own
		return kindOf(t.Elem())
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.String:
			return "list"
		case reflect.Int64:
			if t.Elem() == durationType {
				return "list of durations"
			}
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
