package kafkatest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// on the test doesn't kill brokers in the middle of a test's own clean end, and
// has the kernel kill it when this process ends without one: a panic, a timeout
// of go test, kill -9.
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
