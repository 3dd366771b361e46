package process

import "os/exec"

// StartChild starts a process that belongs to this one: in a process group of its
// own, so that Ctrl-C doesn't kill it in the middle of this one's clean end; and, on
// Linux, so that the kernel kills it when this process ends without cleaning up: a
// panic, kill -9.
func StartChild(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	return startChild(cmd)
}
