package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ping(t *testing.T, c Config) error {
	t.Helper()
	opts, err := Options(c, discard)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	return cl.Ping(t.Context())
}

func TestOptionsTellOfBadFiles(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	empty, text := write(t, "empty", "\n"), write(t, "text", "hunter2")
	for want, c := range map[string]Config{
		"preparing kafka.tls: reading ca_file: open " + missing:                            {TLS: TLSConfig{Enabled: true, CAFile: missing}},
		"preparing kafka.tls: reading ca_file " + text + ": no certificate":                {TLS: TLSConfig{Enabled: true, CAFile: text}},
		"preparing kafka.tls: reading cert_file and key_file":                              {TLS: TLSConfig{Enabled: true, CertFile: text, KeyFile: text}},
		"preparing kafka.sasl: reading password_file: open " + missing:                     {SASL: SASLConfig{"PLAIN", "u", missing}},
		"preparing kafka.sasl: reading password_file: " + empty + " is empty":              {SASL: SASLConfig{"OAUTHBEARER", "", empty}},
		"preparing kafka.sasl: reading password_file: open " + filepath.Dir(missing) + "/": {SASL: SASLConfig{"SCRAM-SHA-256", "u", filepath.Dir(missing) + "/other"}},
	} {
		c.Brokers, c.InstanceID = []string{"127.0.0.1:1"}, "a"
		if _, err := Options(c, discard); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestPasswordsAreCheckedAndCanBeReplaced(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster := startCluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "reenvio", "right one"))
			c := Config{Brokers: cluster.ListenAddrs(), InstanceID: "a", SASL: SASLConfig{mechanism, "reenvio", write(t, "password", "right one\n")}}
			if err := ping(t, c); err != nil {
				t.Errorf("with the password: %v", err)
			}
			opts, err := Options(c, discard)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.SASL.PasswordFile, []byte("hunter2"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := ping(t, c); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("with a wrong one: %v", err)
			}
			if err := os.WriteFile(c.SASL.PasswordFile, []byte("right one"), 0o600); err != nil {
				t.Fatal(err)
			}
			cl, err := kgo.NewClient(opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			if err := cl.Ping(t.Context()); err != nil {
				t.Errorf("after the password was set right: %v", err)
			}
		})
	}
}

// The embedded broker doesn't know OAUTHBEARER; this is what would go to one that does.
func TestTokenIsReadForEachSession(t *testing.T) {
	file := write(t, "token", "first\n")
	mechanism, err := SASLConfig{"OAUTHBEARER", "", file}.mechanism()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		_, message, err := mechanism.Authenticate(t.Context(), "broker")
		if err != nil || mechanism.Name() != "OAUTHBEARER" || !strings.Contains(string(message), "auth=Bearer "+token+"\x01") {
			t.Errorf("%q, %v", message, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mechanism.Authenticate(t.Context(), "broker"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func TestCredentialsInClearAreWarnedOf(t *testing.T) {
	file := write(t, "password", "hunter2")
	for _, test := range []struct {
		mechanism string
		tls, warn bool
	}{{"PLAIN", false, true}, {"OAUTHBEARER", false, true}, {"PLAIN", true, false}, {"SCRAM-SHA-256", false, false}} {
		var out bytes.Buffer
		c := good()
		c.TLS.Enabled, c.SASL = test.tls, SASLConfig{test.mechanism, "u", file}
		if _, err := Options(c, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "kafka.tls.enabled") != test.warn || strings.Contains(out.String(), "hunter2") {
			t.Errorf("%+v: logged %q", test, out.String())
		}
	}
}

func TestLoggerPassesOnWhatItsHandlerWants(t *testing.T) {
	for level, want := range map[slog.Level]kgo.LogLevel{
		levelTrace: kgo.LogLevelDebug, slog.LevelDebug: kgo.LogLevelInfo, slog.LevelInfo: kgo.LogLevelWarn,
		slog.LevelWarn: kgo.LogLevelWarn, slog.LevelError: kgo.LogLevelError, slog.LevelError + 1: kgo.LogLevelNone,
	} {
		if got := newLogger(slog.New(slog.NewTextHandler(new(bytes.Buffer), &slog.HandlerOptions{Level: level}))).Level(); got != want {
			t.Errorf("a handler of %v: kgo logs up to %v, want %v", level, got, want)
		}
	}
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levelTrace})))
	for _, level := range []kgo.LogLevel{kgo.LogLevelDebug, kgo.LogLevelInfo, kgo.LogLevelWarn, kgo.LogLevelError, kgo.LogLevelNone} {
		l.Log(level, "hello", "broker", 1)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		want := []string{"DEBUG-4", "DEBUG", "WARN", "ERROR"}[i]
		if !strings.HasSuffix(line, "level="+want+" msg=hello component=kafka broker=1") {
			t.Errorf("line %d is %q, want level %s", i, line, want)
		}
	}
	if strings.Count(out.String(), "\n") != 4 {
		t.Errorf("logged %q", out.String())
	}
}

func TestClientsSayWhoTheyAre(t *testing.T) {
	opts, err := Options(good(), discard)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if id, ok := cl.OptValue(kgo.ClientID).(string); !ok || id != "reenvio-a-1" {
		t.Errorf("client id %v", cl.OptValue(kgo.ClientID))
	}
}

func TestIsFenced(t *testing.T) {
	cluster := startCluster(t)
	zombie, successor := newWriter(t, cluster, "tx"), newWriter(t, cluster, "tx")
	zombie.begin("a")
	successor.commit("b")
	err := zombie.cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("c")}).FirstErr()
	if err == nil {
		err = zombie.cl.EndTransaction(t.Context(), kgo.TryCommit)
	}
	if !IsFenced(err) {
		t.Errorf("a client whose id was taken over got %v", err)
	}
	for _, err := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping} {
		if !IsFenced(fmt.Errorf("ending the transaction: %w", err)) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{nil, context.Canceled, kerr.TransactionAbortable, kerr.ConcurrentTransactions, kerr.FencedInstanceID, kerr.NotCoordinator} {
		if IsFenced(err) {
			t.Errorf("%v", err)
		}
	}
}
