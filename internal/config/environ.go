package config

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix  = "REENVIO_"
	envNesting = "__"

	// FileVariable names the configuration file where there is no --config.
	FileVariable = "REENVIO_CONFIG"
	// testPrefix is kept for the project's own tests; what begins with it is no setting.
	testPrefix = "REENVIO_TEST_"
)

// FileFrom returns the value of REENVIO_CONFIG, or "".
func FileFrom(environ []string) string {
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); name == FileVariable {
			return value
		}
	}
	return ""
}

func fromEnviron(environ []string) (source, error) {
	names := map[string]string{} // the variable of each key
	variables := koanf.New(delimiter)
	// No delimiter for the provider: it would lose a variable when another names the section above it.
	err := variables.Load(env.Provider("", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if name == FileVariable || strings.HasPrefix(name, testPrefix) {
				return "", nil
			}
			key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), envNesting, delimiter))
			if name != Variable(key) { // in small letters it is another variable, and both may be set
				key = strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), delimiter, envNesting) // no key has these
			}
			names[key] = name
			return key, value
		},
	}), nil)
	if err != nil {
		return source{}, fmt.Errorf("reading the environment: %w", err)
	}
	return source{
		name:   "the environment",
		values: variables.All(),
		place:  func(key string) string { return "environment variable " + names[key] },
		spell: func(key string) string {
			if name, given := names[key]; given {
				return name
			}
			return Variable(key)
		},
	}, nil
}

// Variable is the environment variable of a key: kafka.brokers is REENVIO_KAFKA__BROKERS.
func Variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, delimiter, envNesting))
}
