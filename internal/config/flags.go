package config

import (
	"fmt"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// RegisterFlags gives every setting of a struct a flag of the same name: --kafka.brokers. They are hidden from the help of commands,
// where they would bury the few flags that belong to the command.
func RegisterFlags(flags *pflag.FlagSet, of any) {
	for _, field := range fieldsOf(of).list {
		flag := flags.VarPF(&flagText{kind: field.Kind()}, field.Key, "", field.Doc)
		flag.Hidden = true
		if field.Kind() == "true or false" {
			flag.NoOptDefVal = "true"
		}
	}
}

// flagText keeps a flag as it was written: it is converted with the other sources, so that messages are the same everywhere.
type flagText struct{ text, kind string }

func (f *flagText) String() string        { return f.text }
func (f *flagText) Set(text string) error { f.text = text; return nil }
func (f *flagText) Type() string          { return f.kind }

func fromFlags(flags *pflag.FlagSet, known fields) (source, error) {
	if flags == nil {
		return source{}, nil
	}
	given := koanf.New(delimiter)
	// Without an instance to look into, the provider leaves out what was not given.
	err := given.Load(posflag.ProviderWithFlag(flags, delimiter, nil, func(f *pflag.Flag) (string, any) {
		if _, setting := known.byKey[f.Name]; !setting {
			return "", nil
		}
		return f.Name, f.Value.String()
	}), nil)
	if err != nil {
		return source{}, fmt.Errorf("reading the flags: %w", err)
	}
	spell := func(key string) string { return "--" + key }
	return source{name: "the flags", values: given.All(), place: func(key string) string { return "flag " + spell(key) }, spell: spell}, nil
}

func fromBase(base Base) source {
	values := map[string]any{}
	for key, text := range base.Values {
		values[key] = text
	}
	return source{name: base.Place, values: values, place: func(string) string { return base.Place }, spell: func(key string) string { return key }}
}
