package kafkatest

import "os/exec"

// StartChild starts a process for a test: in a process group of its own, so that
// Ctrl-C on the test doesn't kill it in the middle of the test's own clean end;
// and, on Linux, so that the kernel kills it when this process ends without
// cleaning up: a panic, a timeout of go test, kill -9.
func StartChild(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	return startChild(cmd)
}
