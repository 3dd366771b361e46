package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/reenvio/reenvio/internal/kafkatest"
)

// binary is reenvio, built once from this tree.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reenvio-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "reenvio")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/reenvio/reenvio/cmd/reenvio").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building reenvio: %v\n%s", err, out)
		return 1
	}
	return kafkatest.Run(m)
}
