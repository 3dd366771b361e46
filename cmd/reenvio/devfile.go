package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/reenvio/reenvio/internal/config"
)

const (
	defaultDataDir = ".reenvio"
	devFileName    = "dev.json"
)

// devFile tells the clients in a second terminal where `reenvio dev` runs. It lies in the data directory while dev runs.
type devFile struct {
	PID        int      `json:"pid"`
	Brokers    []string `json:"brokers"`
	Prefix     string   `json:"prefix"`
	KeysetFile string   `json:"keyset_file"` // absolute
	Ports      devPorts `json:"ports"`
	// Settings are the others that a client must share with the process, by key: topics.partitions and the like.
	Settings map[string]string `json:"settings"`
}

type devPorts struct {
	Broker   int `json:"broker"`
	Admin    int `json:"admin"`
	Receiver int `json:"receiver"`
	Page     int `json:"page"`
}

// findDev returns the dev.json of a `reenvio dev` that runs in this directory. It returns nil when there is none, or when it is what a
// killed process left behind.
func findDev(path string) (*devFile, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading where `reenvio dev` runs: %w", err)
	}
	var found devFile
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, fmt.Errorf("reading where `reenvio dev` runs, %s: %w; delete the file if no `reenvio dev` runs here", path, err)
	}
	if !alive(found.PID) {
		return nil, nil
	}
	return &found, nil
}

// alive asks the kernel; EPERM is the answer for a process of somebody else.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// write puts the file in its place in one step, so that a client never reads half of it.
func (f *devFile) write(dataDir string) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", devFileName, err)
	}
	path := filepath.Join(dataDir, devFileName)
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", devFileName, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", devFileName, err)
	}
	return nil
}

// base is the file as the weakest source of configuration. The keyset file is left out when the person has set a keyset another way.
func (f *devFile) base(path string, ownKeyset bool) config.Base {
	values := map[string]string{"kafka.brokers": strings.Join(f.Brokers, ","), "topics.prefix": f.Prefix}
	maps.Copy(values, f.Settings)
	if !ownKeyset {
		values["secrets.keyset_file"] = f.KeysetFile
	}
	return config.Base{Place: path, Values: values}
}
