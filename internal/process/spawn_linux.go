package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// childAttributes are those of StartChild.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

var spawns = make(chan func())

// spawner is the thread that children are started from. The kernel's "parent"
// of a child is the thread that forked it, not the process, and Go ends threads
// when it likes; this one is held for ever.
var spawner = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for spawn := range spawns {
			spawn()
		}
	}()
})

// startChild starts a command so that it dies with this process.
func startChild(cmd *exec.Cmd) error {
	spawner()
	started := make(chan error)
	spawns <- func() { started <- cmd.Start() }
	return <-started
}
