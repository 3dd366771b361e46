package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dataDir is where `reenvio dev` keeps its broker's data, its keyset and dev.json. It belongs to one process at a time.
type dataDir struct {
	path string // absolute
	lock *os.File
}

const anotherDir = "choose one that can be written to with --data-dir"

// openDataDir makes the directory where there is none, and locks it. The lock is the kernel's (flock), so it goes with its process, even
// with a killed one; the pid in the lock file is for the message only.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w; %s", err, anotherDir)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w; %s", err, anotherDir)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the data directory %s is in use by another `reenvio dev`%s: stop that, or choose another with --data-dir", path, holder(lock))
		}
		return nil, fmt.Errorf("locking the data directory %s: %w", path, err)
	}
	if err := errors.Join(lock.Truncate(0), writeAt(lock, fmt.Sprintf("%d\n", os.Getpid()))); err != nil {
		lock.Close()
		return nil, fmt.Errorf("locking the data directory %s: %w", path, err)
	}
	return &dataDir{path: path, lock: lock}, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func holder(lock *os.File) string {
	text := make([]byte, 32)
	n, _ := lock.ReadAt(text, 0)
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// release removes dev.json first: a client must not find a process that no longer serves it. The lock file stays, since removing it
// would let two processes lock two files of the same name.
func (d *dataDir) release() error {
	err := os.Remove(d.file(devFileName))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.lock.Close())
}
