package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConfigShowsWhatIsInForce(t *testing.T) {
	file := writeFile(t, "reenvio.yaml", "kafka:\n  brokers: [a:1, b:2]\nretry:\n  max_delay: 10m\n")
	s := newShell(t, "REENVIO_CONFIG="+file, "REENVIO_SECRETS__KEYSET=c2VjcmV0", "REENVIO_TEST_BROKERS=ignored")
	o := s.run(t, "config", "--retry.jitter_ratio=0.2").wantCode(t, exitOK).
		wantOut(t, "a:1,b:2", file+":2", "10m", file+":4", "0.2", "flag --retry.jitter_ratio", "(redacted)", "environment variable REENVIO_SECRETS__KEYSET", "default")
	if strings.Contains(o.out, "c2VjcmV0") {
		t.Error("the keyset is shown")
	}
	tree := s.run(t, "config", "-o", "json").wantCode(t, exitOK).object(t)
	if got := tree["retry"].(map[string]any)["max_delay"]; got != "10m" {
		t.Errorf("max_delay: %v", got)
	}
	if got := tree["secrets"].(map[string]any)["keyset"]; got != "(redacted)" {
		t.Errorf("keyset: %v", got)
	}
}

// What follows from other settings, and what is on unless it is switched off, is shown as it is in force.
func TestConfigShowsEffectiveDefaults(t *testing.T) {
	for prefix, group := range map[string]string{"webhooks.": "webhooks.dispatcher", "grown.": "grown.dispatcher"} {
		s := newShell(t, "REENVIO_TOPICS__PREFIX="+prefix)
		tree := s.run(t, "config", "-o", "json").wantCode(t, exitOK).object(t)
		if got := tree["dispatcher"].(map[string]any)["group"]; got != group {
			t.Errorf("prefix %s: the group is %v, want %s", prefix, got, group)
		}
		if got := tree["secrets"].(map[string]any)["require_encrypted"]; got != true {
			t.Errorf("require_encrypted: %v", got)
		}
		rows := strings.Fields(s.run(t, "config", "--dispatcher.group=mine").wantCode(t, exitOK).wantOut(t, "mine").out)
		if i := slices.Index(rows, "secrets.require_encrypted"); rows[i+1] != "true" {
			t.Errorf("secrets.require_encrypted %s", rows[i+1])
		}
	}
}

func TestTheNamesOfTheContract(t *testing.T) {
	tree := newShell(t).run(t, "config", "-o", "json").wantCode(t, exitOK).object(t)
	for section, keys := range map[string][]string{
		"kafka": {"brokers", "instance_id", "tls", "sasl"}, "topics": {"prefix", "partitions", "replication"},
		"retry":      {"tiers", "jitter_ratio", "max_delay"},
		"dispatcher": {"group", "cycle", "drain_timeout", "max_in_flight", "max_uncommitted", "leave_on_stop"},
		"attempts":   {"successes", "response_excerpts"}, "metrics": {"event_types"}, "dedup": {"window"}, "egress": {"allow", "deny", "allow_http"}, "admin": {"listen"},
		"secrets": {"keyset_file", "keyset"}, "log": {"level"},
	} {
		values, _ := tree[section].(map[string]any)
		for _, key := range keys {
			if _, there := values[key]; !there {
				t.Errorf("%s.%s is missing", section, key)
			}
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	s := defaultSettings()
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	dev := devDefaults()
	if err := dev.validate(); err != nil {
		t.Error(err)
	}
}

func TestTooManyEventTypesAreRefusedByEveryCommand(t *testing.T) {
	s := newShell(t)
	s.run(t, "config", "--metrics.event_types="+strings.Repeat("t,", 50)+"t").wantCode(t, exitUsage).wantErr(t, "metrics.event_types has 51 entries")
}

func TestTheReferencePageIsCurrent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	made := newShell(t).run(t, "config", "reference").wantCode(t, exitOK)
	if made.out != string(page) {
		t.Error("docs/configuration.md is not what `reenvio config reference` prints: run `make generate`")
	}
}

func TestKeygenNeverOverwrites(t *testing.T) {
	s := newShell(t)
	s.run(t, "secrets", "keygen", "-f", "k.json").wantCode(t, exitOK).wantErr(t, "k.json", "secrets.keyset_file")
	before, err := os.ReadFile("k.json")
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "secrets", "keygen", "-f", "k.json").wantCode(t, exitFailed).wantErr(t, "k.json")
	if after, err := os.ReadFile("k.json"); err != nil || string(after) != string(before) {
		t.Error("the keyset has changed")
	}
}

func TestVersion(t *testing.T) {
	s := newShell(t)
	s.run(t, "version").wantCode(t, exitOK).wantOut(t, "reenvio "+version())
	if v := s.run(t, "version", "-o", "json").wantCode(t, exitOK).object(t); v["version"] != version() {
		t.Errorf("got %v", v)
	}
}
