package procs

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

// Main is the TestMain of a package that starts dispatchers: it builds the binary,
// runs the tests and exits.
func Main(m *testing.M) { os.Exit(run(m)) } //nolint:revive // deep-exit: it is the main function of a test binary

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reenvio-procs-")
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
