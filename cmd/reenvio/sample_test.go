package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/reenvio/reenvio/internal/config"
)

// A setting of the sample that is commented out: "#max_delay: 1h", "#  enabled: true".
var commentedOut = regexp.MustCompile(`(?m)^( *)#( *[a-z_]+:)`)

func TestTheSampleConfiguration(t *testing.T) {
	path, err := filepath.Abs("../../deploy/reenvio.yaml")
	if err != nil {
		t.Fatal(err)
	}
	newShell(t).run(t, "config", "--config", path).wantCode(t, exitOK).wantOut(t, path)

	// Every setting is there, if only commented out, and what is commented out can be used as it stands.
	sample, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := defaultSettings()
	origins, err := config.Load(&s, config.Sources{File: writeFile(t, "all.yaml", commentedOut.ReplaceAllString(string(sample), "$1$2"))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	defaults := defaultSettings()
	standard := map[string]string{}
	for _, field := range config.Fields(&defaults) {
		if field.Default == "" && field.Text() != "" && field.Text() != "false" { // else the sample has an example
			standard[field.Key] = field.Text()
		}
	}
	for _, field := range config.Fields(&s) {
		if origins[field.Key] == "" {
			t.Errorf("%s is not in deploy/reenvio.yaml", field.Key)
		}
		if want := standard[field.Key]; want != "" && field.Text() != want {
			t.Errorf("%s: deploy/reenvio.yaml shows %s, the default is %s", field.Key, field.Text(), want)
		}
	}
}
