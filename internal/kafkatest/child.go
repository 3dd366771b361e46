package kafkatest

import (
	"os/exec"

	ours "github.com/reenvio/reenvio/internal/process"
)

// StartChild starts a process for a test; it ends with this one.
func StartChild(cmd *exec.Cmd) error { return ours.StartChild(cmd) }
