//go:build !linux

package kafkatest

import (
	"os/exec"
	"syscall"
)

// childAttributes has nothing to set: only Linux kills children with their
// parent. After a test that was killed, look for java processes.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func startChild(cmd *exec.Cmd) error { return cmd.Start() }
