package clients_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// TestThePages: what the pages in docs/ show as code works as it stands there.
func TestThePages(t *testing.T) {
	w := newWorld(t)
	java, jars, err := kafkatest.Java(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	python, err := filepath.Abs("../../.cache/clients-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	snippets(t, dir, w.topo.Prefix(), "upstream.md", "receivers.md", "analysts.md")

	const webhook, secret = "orders", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	_, err = w.control.WriteEndpoint(w.ctx, record.Endpoint{
		ID: webhook, URL: w.receiver.URL(webhook), Secrets: []record.Secret{{Value: secret, CreatedAt: record.At(time.Now())}},
	}, control.Absent)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.ProduceSync(w.ctx, &kgo.Record{Topic: w.topo.Events(), Key: []byte("nobody")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.dispatch()

	producers := map[string][]string{
		"produce.sh":   {"bash", "-e", "produce.sh"},
		"produce.py":   {python, "produce.py"},
		"Produce.java": {java, "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), "Produce.java"},
	}
	for name, command := range producers {
		t.Run(name, func(t *testing.T) { w.snippet(t, dir, nil, command...) })
	}
	w.awaitIdle()
	arrived := w.receiver.Of(webhook)
	if len(arrived) != len(producers) {
		t.Fatalf("%d events arrived of %d", len(arrived), len(producers))
	}
	for _, r := range arrived {
		if r.EventID != "order-4711-paid" || r.Header.Get("X-Webhook-Event-Type") != "order.paid" || strings.ReplaceAll(string(r.Body), " ", "") != `{"order":4711}` {
			t.Errorf("arrived: %s %v %s", r.EventID, r.Header, r.Body)
		}
	}
	if moved := w.counter("reenvio_misrouted_events_total"); moved > 1 { // that of nobody, perhaps
		t.Errorf("%d events were in the wrong partition", moved)
	}

	request := sealed(t, secret, arrived[0])
	receivers := map[string]struct {
		tool, want string
		command    []string
	}{
		"verify.py":   {python, "True False", []string{python, "check.py"}},
		"receiver.py": {python, "202 202 200 202", []string{python, "accept.py"}},
		"verify.mjs":  {"node", "true false", []string{"node", "check.mjs"}},
		"verify.go":   {"go", "true false", []string{"go", "run", "."}},
		"dlq.sh":      {"jq", "webhook_unknown\t\tnobody\t", []string{"bash", "dlq.sh"}},
		"attempts.sh": {"jq", "3 orders\tdelivered", []string{"bash", "attempts.sh"}},
	}
	for name, harness := range harnesses {
		write(t, filepath.Join(dir, name), harness)
	}
	write(t, filepath.Join(dir, "secret.txt"), secret)
	if err := os.Mkdir(filepath.Join(dir, "receiver"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"verify.go": "receiver/verify.go", "produce.go": "produce.go.txt"} { // out of the way of package main
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	for name, r := range receivers {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(r.tool); err != nil {
				t.Skipf("there is no %s: what the page shows is not run", r.tool)
			}
			if got := w.snippet(t, dir, request, r.command...); !strings.Contains(got, r.want) {
				t.Errorf("it says %q, want %q", got, r.want)
			}
		})
	}
}

// harnesses ask a snippet about the request on standard input: as it came, and with a byte more.
var harnesses = map[string]string{
	"check.py": `import base64, json, sys
from verify import verify
r = json.load(sys.stdin)
body = base64.b64decode(r["body"])
print(verify(r["secret"], r["header"].get, body), verify(r["secret"], r["header"].get, body + b" "))
`,
	"check.mjs": `import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
const r = JSON.parse(readFileSync(0)), body = Buffer.from(r.body, "base64");
console.log(verify(r.secret, r.header, body), verify(r.secret, r.header, Buffer.concat([body, Buffer.from(" ")])));
`,
	"main.go": `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"snippet/receiver"
)

func main() {
	var r struct {
		Secret string
		Header map[string]string
		Body   []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		panic(err)
	}
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	fmt.Println(receiver.Verify(r.Secret, header, r.Body), receiver.Verify(r.Secret, header, append(r.Body, ' ')))
}
`,
	"go.mod": "module snippet\n\ngo 1.26\n",
	"accept.py": `import receiver
say = lambda: receiver.accept("evt-1", "order.paid", b"{}")
become = lambda state: receiver.database().executescript(f"UPDATE events SET state = '{state}'")
answers = [say(), say()]
become("COMPLETED")
answers.append(say())
become("FAILED")
answers.append(say())
print(*answers)
`,
}

// sealed is a request for a harness.
func sealed(t *testing.T, secret string, r kafkatest.Request) []byte {
	t.Helper()
	header := map[string]string{}
	for name := range r.Header {
		header[strings.ToLower(name)] = r.Header.Get(name)
	}
	data, err := json.Marshal(map[string]any{"secret": secret, "header": header, "body": r.Body})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// snippet runs a program in the snippets' directory, and returns what it prints.
func (w *world) snippet(t *testing.T, dir string, stdin []byte, command ...string) string {
	t.Helper()
	inDir := []string{"bash", "-c", `cd "$0" && export BROKERS="$1" && shift && exec "$@"`, dir, strings.Join(w.cluster.Brokers, ",")}
	out, err := run(w.ctx, stdin, slices.Concat(inDir, command)...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var marked = regexp.MustCompile("(?s)<!-- snippet: (\\S+) -->\n```\\w+\n(.*?)```")

// snippets writes what the pages show as code to files, for topics with the prefix.
func snippets(t *testing.T, dir, prefix string, pages ...string) {
	t.Helper()
	for _, page := range pages {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := marked.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("docs/%s shows no code", page)
		}
		for _, m := range found {
			write(t, filepath.Join(dir, string(m[1])), strings.ReplaceAll(string(m[2]), "webhooks.", prefix))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
