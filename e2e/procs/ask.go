package procs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
)

// Reasons is why a dispatcher is not ready, in its own words; none when it is. It has
// to have an address in Admin.
func (w *World) Reasons(instance string) ([]string, error) {
	req, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.Admin[instance]+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var health struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
		return nil, fmt.Errorf("reading what /readyz of %s says: %w", instance, err)
	}
	if ready := resp.StatusCode == http.StatusOK; ready != (len(health.Reasons) == 0) {
		return nil, fmt.Errorf("/readyz of %s answers %s (%s), and gives the reasons %q", instance, resp.Status, health.Status, health.Reasons)
	}
	return health.Reasons, nil
}

// Command runs a command of reenvio as a person does, and returns what it says.
func (w *World) Command(args ...string) (string, error) {
	cmd := exec.CommandContext(w.Ctx, binary, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), w.environ("person")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
