package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// client is a program that produces.
type client struct {
	name     string
	settings settings
	// cannot says why the client can't do an example; empty: it can.
	cannot func(x *example, onApache bool) string
	// produce does the examples in their order, and returns for each of their events
	// the error that the client was told, as librdkafka or Kafka name it.
	produce func(ctx context.Context, examples []*example) ([][]string, error)
}

func findClients(t *testing.T, brokers string) []client {
	t.Helper()
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal("the command kcat is missing: apt-get install kcat")
	}
	python, err := filepath.Abs("../../.cache/clients-venv/bin/python")
	if err == nil {
		_, err = exec.LookPath(python)
	}
	if err != nil {
		t.Fatal("there is no Python with a Kafka client: make test-clients makes one")
	}
	java, jars, err := kafkatest.Java(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	produceJava := []string{java, "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"), "testdata/Produce.java"}
	can := func(*example, bool) string { return "" }
	return []client{
		{"kcat", librdkafka, kcatCannot, kcatProducer(kcat, brokers, t.TempDir())},
		{"python", librdkafka, can, planProducer(brokers, python, "testdata/produce.py")},
		{"java", javaClient, can, planProducer(brokers, produceJava...)},
	}
}

// planProducer is a program that reads all sessions and says how each record fared.
func planProducer(brokers string, command ...string) func(context.Context, []*example) ([][]string, error) {
	return func(ctx context.Context, examples []*example) ([][]string, error) {
		sessions := make([]session, len(examples))
		for i, x := range examples {
			x.Config["bootstrap.servers"] = brokers
			sessions[i] = x.session
		}
		plan, err := json.Marshal(sessions)
		if err != nil {
			return nil, err
		}
		out, err := run(ctx, plan, command...)
		if err != nil {
			return nil, err
		}
		var errors [][]string
		if err := json.Unmarshal(out, &errors); err != nil {
			return nil, fmt.Errorf("reading what %s has printed: %w\n%s", command[0], err, out)
		}
		return errors, nil
	}
}

// run runs a program to its end. It dies with the test.
func run(ctx context.Context, stdin []byte, command ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := kafkatest.StartChild(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", command[0], err)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
