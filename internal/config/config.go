// Package config loads a process's configuration from four places, each stronger than the one before: the defaults in the struct it is
// given, a YAML file, the environment (REENVIO_, with __ between the parts of a key) and command line flags.
//
// It refuses what it does not understand. A key that no struct field has is an error in every place, the environment included, because
// a misspelt key is a setting that silently isn't there; so is a value that is not of its field's type. All problems of one load are
// reported together, each with its key, where it stands and, for an unknown key, the nearest known one.
//
// The package knows no key itself. Every key is a struct field of the package that uses it:
//
//	type Config struct {
//		Cycle time.Duration `koanf:"cycle" doc:"How often what was decided is committed."`
//	}
//
// The tag doc is the text of the reference page and of the flag's help; secret:"true" keeps the value out of everything printed;
// default:"..." describes a default that is found at run time, such as the host name.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// delimiter stands between the parts of a key: kafka.tls.enabled.
const delimiter = "."

// Sources are the places that can change a default, weakest first. The zero value changes nothing.
type Sources struct {
	Base    Base           // settings that another program left for us, weaker than everything a person wrote
	File    string         // a YAML file; it must exist when it is named
	Environ []string       // "NAME=value", as os.Environ gives them
	Flags   *pflag.FlagSet // flags made by RegisterFlags; only those given on the command line count
}

// Base is a set of settings in text form and the name of the place they come from.
type Base struct {
	Place  string
	Values map[string]string
}

// Origins says, for each key that is not at its default, where its value was set.
type Origins map[string]string

// Load fills into, a pointer to a struct that already holds the defaults. Nothing of it is changed when an error is returned.
// Every error is the fault of whoever wrote the configuration, and its text says what to write instead.
func Load(into any, from Sources) (Origins, error) {
	known := fieldsOf(into)
	merged := koanf.New(delimiter)
	origins := Origins{}
	var problems []error
	for _, read := range []func() (source, error){
		func() (source, error) { return fromBase(from.Base), nil },
		func() (source, error) { return fromFile(from.File) },
		func() (source, error) { return fromEnviron(from.Environ) },
		func() (source, error) { return fromFlags(from.Flags, known) },
	} {
		src, err := read()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		values, errs := check(src, known, origins)
		problems = append(problems, errs...)
		if err := merged.Load(confmap.Provider(values, delimiter), nil); err != nil {
			return nil, fmt.Errorf("merging the configuration of %s: %w", src.name, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := unmarshal(merged, into); err != nil {
		return nil, fmt.Errorf("filling in the configuration: %w", err)
	}
	return origins, nil
}

// source is what one place says: values by key, still as they were written.
type source struct {
	name   string
	values map[string]any
	place  func(key string) string // where exactly a key stands, for messages
	spell  func(key string) string // how a key is written in this place
}

// check compares a source with the known fields and returns its values, converted to the types of their fields.
func check(src source, known fields, origins Origins) (map[string]any, []error) {
	values := map[string]any{}
	var problems []error
	for _, key := range sortedKeys(src.values) {
		raw := src.values[key]
		field, ok := known.byKey[key]
		switch {
		case ok:
			value, err := convert(raw, field)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", src.place(key), key, err))
				continue
			}
			values[key] = value
			origins[key] = src.place(key)
		case known.sections[key]:
			if empty(raw) { // "kafka:" with every key below it commented out
				continue
			}
			problems = append(problems, fmt.Errorf("%s: %s is a section, not a setting: set a key inside it, such as %s",
				src.place(key), src.spell(key), src.spell(known.nearest(key))))
		default:
			hint := "docs/configuration.md lists those there are"
			if near := known.nearest(key); near != "" {
				hint = fmt.Sprintf("the nearest known key is %q", src.spell(near))
			}
			problems = append(problems, fmt.Errorf("%s: unknown key %q; %s", src.place(key), src.spell(key), hint))
		}
	}
	return values, problems
}

// unmarshal writes the merged values into the struct; fields without a value keep their default. ZeroFields, because a list that
// replaces a longer default would otherwise be written into the default's own array.
func unmarshal(merged *koanf.Koanf, into any) error {
	return merged.UnmarshalWithConf("", into, koanf.UnmarshalConf{DecoderConfig: decoder(into)})
}

func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the configuration file %s does not exist: --config or REENVIO_CONFIG names it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file: %w", err)
	}
	return data, nil
}
