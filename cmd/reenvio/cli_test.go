package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// shell is a person at a prompt: an own empty directory, an environment, and what they type next.
type shell struct {
	environ  []string
	stdin    string
	terminal bool
}

// newShell works in an empty directory, so that no dev.json is found by chance.
func newShell(t *testing.T, environ ...string) *shell {
	t.Helper()
	t.Chdir(t.TempDir())
	return &shell{environ: environ}
}

// newClusterShell has a broker and a keyset.
func newClusterShell(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	s.environ = []string{
		"REENVIO_KAFKA__BROKERS=" + strings.Join(kafkatest.Fake(t).Brokers, ","),
		"REENVIO_TOPICS__PARTITIONS=3", "REENVIO_TOPICS__REPLICATION=1", "REENVIO_SECRETS__KEYSET_FILE=keyset.json",
	}
	s.run(t, "secrets", "keygen", "-f", "keyset.json").wantCode(t, exitOK)
	return s
}

type outcome struct {
	args        []string
	code        int
	out, errOut string
}

func (s *shell) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return s.runCtx(t.Context(), args...)
}

func (s *shell) runCtx(ctx context.Context, args ...string) outcome {
	var out, errOut bytes.Buffer
	code := run(ctx, &cli{stdin: strings.NewReader(s.stdin), stdout: &out, stderr: &errOut, environ: s.environ, terminal: s.terminal}, args)
	return outcome{args: args, code: code, out: out.String(), errOut: errOut.String()}
}

// client is one of the cluster that the shell's commands use, until the end of the test.
func (s *shell) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	brokers, _ := strings.CutPrefix(s.environ[0], "REENVIO_KAFKA__BROKERS=")
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(brokers, ",")...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (o outcome) wantCode(t *testing.T, want int) outcome {
	t.Helper()
	if o.code != want {
		t.Fatalf("reenvio %s: exit status %d, want %d\n--- stdout\n%s--- stderr\n%s", strings.Join(o.args, " "), o.code, want, o.out, o.errOut)
	}
	return o
}

func (o outcome) wantOut(t *testing.T, parts ...string) outcome {
	t.Helper()
	wantParts(t, o, "stdout", o.out, parts)
	return o
}

func (o outcome) wantErr(t *testing.T, parts ...string) outcome {
	t.Helper()
	wantParts(t, o, "stderr", o.errOut, parts)
	return o
}

func wantParts(t *testing.T, o outcome, stream, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("reenvio %s: %s lacks %q:\n%s", strings.Join(o.args, " "), stream, part, text)
		}
	}
}

// object parses the output as JSON.
func (o outcome) object(t *testing.T) map[string]any {
	t.Helper()
	return parse[map[string]any](t, o)
}

func (o outcome) array(t *testing.T) []any {
	t.Helper()
	return parse[[]any](t, o)
}

func parse[T any](t *testing.T, o outcome) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.out), &v); err != nil {
		t.Fatalf("reenvio %s: the output is not the JSON expected: %v\n%s", strings.Join(o.args, " "), err, o.out)
	}
	return v
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
