package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of the code that breaks a promise, and the test that must
// notice.
type mutant struct {
	name     string
	promise  string // that it breaks
	file     string // below the module's root
	old, new string // what is replaced, which must be there exactly once, and by what
	pkg      string // of the test
	run      string // its name
}

// workshop makes mutants and has them tested.
type workshop struct {
	root string // of the module
	dir  string // for overlays
}

// healthy makes sure that the tests pass without a mutant: else they catch anything.
func (w *workshop) healthy(ctx context.Context, chosen []mutant) error {
	tests := map[string][]string{}
	for _, m := range chosen {
		if !slices.Contains(tests[m.pkg], m.run) {
			tests[m.pkg] = append(tests[m.pkg], m.run)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(os.Stderr, "without a mutant: %s\n", pkg)
		if v := w.test(ctx, pkg, strings.Join(tests[pkg], "|"), ""); v.what != passed {
			return fmt.Errorf("the tests of %s must pass without a mutant, and do not (%s):\n%s", pkg, v.what, v.told)
		}
	}
	return nil
}

// try has a mutant tested.
func (w *workshop) try(ctx context.Context, m mutant) verdict {
	path := filepath.Join(w.root, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return verdict{what: outOfDate, told: err.Error()}
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return verdict{what: outOfDate, told: err.Error()}
	}
	overlay, err := w.overlay(path, mutated)
	if err != nil {
		return verdict{what: broken, told: err.Error()}
	}
	return w.test(ctx, m.pkg, m.run, overlay)
}

func (m mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("it is out of date: %s has what it replaces %d times, want once:\n%s", m.file, n, m.old)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}

// overlay writes what the go command reads in place of a file.
func (w *workshop) overlay(path, mutated string) (string, error) {
	file, list := filepath.Join(w.dir, "mutant.go"), filepath.Join(w.dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	return list, os.WriteFile(list, replace, 0o600)
}

// test runs tests against an overlay; without one, against the tree.
func (w *workshop) test(ctx context.Context, pkg, run, overlay string) verdict {
	args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=4m", "-run", "^(" + run + ")$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = w.root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // what it prints says more
	return judge(out.Bytes())
}
