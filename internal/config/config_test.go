package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type sample struct {
	Kafka struct {
		Brokers []string `koanf:"brokers" doc:"Where to start."`
		TLS     struct {
			Enabled bool `koanf:"enabled" doc:"Encrypt | or not."`
		} `koanf:"tls"`
		Instance string `koanf:"instance_id" doc:"Who we are." default:"the host name"`
	} `koanf:"kafka"`
	Retry struct {
		Tiers []time.Duration `koanf:"tiers" doc:"Delays."`
		Ratio float64         `koanf:"jitter_ratio" doc:"How much."`
		Max   time.Duration   `koanf:"max_delay" doc:"The most."`
	} `koanf:"retry"`
	Partitions int32  `koanf:"partitions" doc:"How many."`
	Keyset     string `koanf:"keyset" doc:"A key." secret:"true"`
	Required   *bool  `koanf:"required" doc:"Or not."`
	Dial       func() `koanf:"-"`
}

func defaults() *sample {
	s := &sample{Partitions: 12}
	s.Retry.Tiers = []time.Duration{2 * time.Second, 4 * time.Second}
	s.Retry.Max = time.Hour
	s.Kafka.Brokers = []string{"a:1", "b:2", "c:3"}
	return s
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reenvio.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	RegisterFlags(set, &sample{})
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestEachPlaceIsStrongerThanTheOneBefore(t *testing.T) {
	s := defaults()
	path := file(t, "kafka:\n  brokers: [x:1]\n  tls:\n    enabled: true\nretry:\n  max_delay: 10m\n  jitter_ratio: 0.25\npartitions: 3\n")
	origins, err := Load(s, Sources{
		Base:    Base{Place: "dev.json", Values: map[string]string{"partitions": "2", "kafka.instance_id": "dev"}},
		File:    path,
		Environ: []string{"HOME=/", "REENVIO_CONFIG=x", "REENVIO_TEST_BROKERS=y", "REENVIO_KAFKA__BROKERS=e:1, f:2", "REENVIO_RETRY__MAX_DELAY=20m", "REENVIO_REQUIRED=false"},
		Flags:   flags(t, "--retry.max_delay=30m", "--kafka.tls.enabled"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Kafka.Brokers, " "); got != "e:1 f:2" {
		t.Errorf("brokers %q: the environment's list must replace the file's and the default's", got)
	}
	if s.Retry.Max != 30*time.Minute || s.Partitions != 3 || s.Retry.Ratio != 0.25 || !s.Kafka.TLS.Enabled || s.Kafka.Instance != "dev" {
		t.Errorf("got %+v", s)
	}
	if s.Required == nil || *s.Required {
		t.Errorf("required: got %v, want a set false", s.Required)
	}
	if len(s.Retry.Tiers) != 2 {
		t.Errorf("tiers %v: what nobody set must keep its default", s.Retry.Tiers)
	}
	for key, want := range map[string]string{
		"retry.max_delay": "flag --retry.max_delay", "kafka.brokers": "environment variable REENVIO_KAFKA__BROKERS",
		"partitions": path + ":8", "kafka.instance_id": "dev.json", "retry.tiers": "",
	} {
		if origins[key] != want {
			t.Errorf("origin of %s: got %q, want %q", key, origins[key], want)
		}
	}
}

func TestListsReplaceAndNeverShareTheDefault(t *testing.T) {
	shared := []string{"a:1", "b:2"}
	s := defaults()
	s.Kafka.Brokers = shared
	if _, err := Load(s, Sources{Environ: []string{"REENVIO_KAFKA__BROKERS=z:9", "REENVIO_RETRY__TIERS=1m,10m"}}); err != nil {
		t.Fatal(err)
	}
	if len(s.Kafka.Brokers) != 1 || shared[0] != "a:1" || len(s.Retry.Tiers) != 2 || s.Retry.Tiers[1] != 10*time.Minute {
		t.Errorf("got %v, default now %v, tiers %v", s.Kafka.Brokers, shared, s.Retry.Tiers)
	}
}

func TestEmptyFilesAndSectionsChangeNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "kafka:\n", "kafka: {}\nretry:\n  # tiers: 2s\n"} {
		s := defaults()
		if origins, err := Load(s, Sources{File: file(t, text)}); err != nil || len(origins) != 0 || s.Partitions != 12 || len(s.Kafka.Brokers) != 3 {
			t.Errorf("%q: %v, %v, %+v", text, err, origins, s)
		}
	}
}

func TestWhatIsRefusedAndHow(t *testing.T) {
	tests := []struct {
		name, file, env string
		flag            string
		want            []string
	}{
		{"unknown key in the file", "kafka:\n  broker: x\n", "", "", []string{`:2: unknown key "kafka.broker"`, `nearest known key is "kafka.brokers"`}},
		{"unknown section in the file", "kafak:\n  brokers: x\n", "", "", []string{`:2: unknown key "kafak.brokers"`, `"kafka.brokers"`}},
		{"unknown key in the environment", "", "REENVIO_KAFKA_BROKERS=x", "", []string{"environment variable REENVIO_KAFKA_BROKERS: unknown key", `"REENVIO_KAFKA__BROKERS"`}},
		{"a key without its section", "brokers: x\n", "", "", []string{`"brokers"; the nearest known key is "kafka.brokers"`}},
		{"the beginning of a key", "retry:\n  jitter: 1\n", "", "", []string{`the nearest known key is "retry.jitter_ratio"`}},
		{"near to nothing in its section", "retry:\n  tttt: 1\n", "", "", []string{`unknown key "retry.tttt"; docs/configuration.md`}},
		{"near to nothing", "", "REENVIO_FOO=x", "", []string{`unknown key "REENVIO_FOO"; docs/configuration.md`}},
		{"a section as a value", "kafka: x\n", "", "", []string{":1: kafka is a section", "kafka.brokers"}},
		{"a section in the environment", "", "REENVIO_RETRY=x", "", []string{"REENVIO_RETRY is a section", "REENVIO_RETRY__TIERS"}},
		{"duration without a unit", "retry:\n  max_delay: 100\n", "", "", []string{":2: retry.max_delay", `"100" is no duration`, "100ms"}},
		{"bad duration", "", "REENVIO_RETRY__MAX_DELAY=soon", "", []string{"environment variable REENVIO_RETRY__MAX_DELAY", `"soon" is no duration`, "30s"}},
		{"bad duration in a list", "retry:\n  tiers: [2s, 4]\n", "", "", []string{":2: retry.tiers", `"4" is no duration`}},
		{"bad number", "partitions: many\n", "", "", []string{":1: partitions", `"many" is no whole number`}},
		{"fraction of a whole number", "", "", "--partitions=1.5", []string{"flag --partitions", `"1.5" is no whole number`}},
		{"number too large", "partitions: 3000000000\n", "", "", []string{"3000000000 is too large"}},
		{"bad fraction", "retry:\n  jitter_ratio: a tenth\n", "", "", []string{`"a tenth" is no number`}},
		{"not a number", "", "REENVIO_RETRY__JITTER_RATIO=NaN", "", []string{`"NaN" is no number`}},
		{"neither true nor false", "kafka:\n  tls:\n    enabled: yes please\n", "", "", []string{":3: kafka.tls.enabled", `"yes please" is neither true nor false`}},
		{"number for text", "kafka:\n  instance_id: 0123\n", "", "", []string{":2: kafka.instance_id", "put it in quotes"}},
		{"no value", "partitions:\n", "", "", []string{":1: partitions", "no value"}},
		{"twice", "kafka:\n  brokers: a\nkafka.brokers: b\n", "", "", []string{"kafka.brokers is set twice, in lines 2 and 3"}},
		{"twice in the same way", "partitions: 1\npartitions: 2\n", "", "", []string{`"partitions" already defined at line 1`}},
		{"a second document", "partitions: 1\n---\nfoo: 1\n", "", "", []string{"reenvio.yaml: there is a second document"}},
		{"a second document that is not YAML", "partitions: 1\n---\nfoo: [\n", "", "", []string{"there is a second document"}},
		{"small letters in the environment", "", "REENVIO_kafka__brokers=x", "", []string{`unknown key "REENVIO_kafka__brokers"`, `"REENVIO_KAFKA__BROKERS"`}},
		{"a key as it is in the environment", "", "REENVIO_kafka.brokers=x", "", []string{`unknown key "REENVIO_kafka.brokers"`}},
		{"not YAML", "kafka: [\n", "", "", []string{"reenvio.yaml", "line"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from := Sources{Environ: []string{tt.env}}
			if tt.file != "" {
				from.File = file(t, tt.file)
			}
			if tt.flag != "" {
				from.Flags = flags(t, tt.flag)
			}
			s := defaults()
			_, err := Load(s, from)
			if err == nil {
				t.Fatalf("was accepted: %+v", s)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestAllProblemsAreNamedAtOnceAndNothingChanges(t *testing.T) {
	s := defaults()
	_, err := Load(s, Sources{File: file(t, "partitions: 3\nbrokers: x\n"), Environ: []string{"REENVIO_RETRY__MAX_DELAY=x"}, Flags: flags(t, "--retry.jitter_ratio=y")})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three lines, got: %v", err)
	}
	if s.Partitions != 12 {
		t.Error("a refused configuration was filled in")
	}
}

func TestASectionHidesNoVariableInIt(t *testing.T) {
	for range 20 { // the order of a map decides
		_, err := Load(defaults(), Sources{Environ: []string{"REENVIO_KAFKA__BROKERS=a", "REENVIO_KAFKA=x", "REENVIO_KAFKA__TLS__ENABLED=maybe"}})
		if err == nil || !strings.Contains(err.Error(), "REENVIO_KAFKA is a section") || !strings.Contains(err.Error(), `"maybe" is neither`) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Load(defaults(), Sources{File: "/nowhere/reenvio.yaml"})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/reenvio.yaml does not exist") {
		t.Errorf("got %v", err)
	}
	if got := FileFrom([]string{"A=b", "REENVIO_CONFIG=c.yaml"}); got != "c.yaml" {
		t.Errorf("FileFrom: %q", got)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	s := defaults()
	s.Keyset = "hunter2"
	var all strings.Builder
	for _, field := range Fields(s) {
		all.WriteString(field.Key + "=" + field.Text() + "\n")
	}
	if strings.Contains(all.String(), "hunter2") || !strings.Contains(all.String(), "keyset="+Redacted) {
		t.Errorf("printed:\n%s", &all)
	}
	if tree := Tree(s); tree["keyset"] != Redacted {
		t.Errorf("tree: %v", tree["keyset"])
	}
	_, err := Load(s, Sources{File: file(t, "keyset: 4711\n")})
	if err == nil || strings.Contains(err.Error(), "4711") {
		t.Errorf("the message must not show the value: %v", err)
	}
}

func TestTreeKeepsTypes(t *testing.T) {
	s := defaults()
	tree := Tree(s)
	retry := tree["retry"].(map[string]any)
	if retry["max_delay"] != "1h" || tree["partitions"] != int32(12) || len(retry["tiers"].([]string)) != 2 {
		t.Errorf("got %v", tree)
	}
	if _, there := tree["required"]; there {
		t.Error("a setting that is not set must be left out")
	}
}

func TestReferenceComesFromTheCode(t *testing.T) {
	page, err := Reference(defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `kafka.brokers` | list | `a:1,b:2,c:3` | Where to start. |\n",
		"| `kafka.instance_id` | text | the host name | Who we are. |\n",
		"| `kafka.tls.enabled` | true or false | `false` | Encrypt \\| or not. |\n",
		"| `retry.tiers` | list of durations | `2s,4s` | Delays. |\n",
		"| `required` | true or false |  | Or not. |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if _, err := Reference(&struct {
		A int `koanf:"a"`
	}{}); err == nil || !strings.Contains(err.Error(), "setting a has no doc") {
		t.Errorf("got %v", err)
	}
}

func TestDurationsPrintShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 30 * time.Second: "30s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 100 * time.Millisecond: "100ms", time.Hour + time.Second: "1h0m1s",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%v: got %s", d, got)
		}
	}
}
