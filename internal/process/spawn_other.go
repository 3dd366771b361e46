//go:build !linux

package process

import (
	"os/exec"
	"syscall"
)

// childAttributes has nothing to set: only Linux kills children with their
// parent. After a parent that was killed, look for what it left.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func startChild(cmd *exec.Cmd) error { return cmd.Start() }
