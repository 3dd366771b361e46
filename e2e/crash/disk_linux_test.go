package crash_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// ownMounts is set in the process of a test that may mount, and whose mounts nobody
// else sees.
const ownMounts = "REENVIO_TEST_OWN_MOUNTS"

// withOwnMounts runs the test again as such a process. That takes no rights where user
// namespaces are permitted to all; where they are not, the test is skipped.
func withOwnMounts(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=yes")
	cmd.Stdout = io.MultiWriter(t.Output(), &out)
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, // root, inside
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	runtime.LockOSThread() // the process would die with the thread that started it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		untried(t, fmt.Errorf("starting a process with a user and a mount namespace of its own: %w", err))
	}
	err = cmd.Wait()
	if err != nil {
		t.Fatalf("the process with mounts of its own: %v", err)
	}
	if strings.Contains(out.String(), "--- SKIP: "+t.Name()) {
		t.Skip("not tried; the reason is above")
	}
}

// untried skips the test for a refusal of the machine, and fails it for any other error.
func untried(t *testing.T, err error) {
	t.Helper()
	for _, refusal := range []error{
		syscall.EPERM, syscall.EACCES, syscall.ENOSYS, // a rule of the machine, or of the container
		syscall.EINVAL,                 // a kernel without user namespaces
		syscall.ENOSPC, syscall.EUSERS, // it permits no more of them, perhaps none
	} {
		if errors.Is(err, refusal) {
			t.Skipf("not tried: full disks under Apache Kafka. %v; it needs a machine that permits user namespaces to everybody", err)
		}
	}
	t.Fatal(err)
}

// diskSize is more than a broker writes here, and little enough for memory.
const diskSize = "64m"

// disk is where a small one is mounted.
type disk string

func mountDisk(t *testing.T) disk {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("disk", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		untried(t, fmt.Errorf("mounting a disk of %s: %w", diskSize, err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting a disk: %v", err)
		}
	})
	return disk(dir)
}

func (d disk) junk() string { return filepath.Join(string(d), "junk") }

// fill leaves no room for anything more.
func (d disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(d.junk())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling a disk: %v", err)
	}
}

func (d disk) tidy(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.junk()); err != nil {
		t.Fatal(err)
	}
}
