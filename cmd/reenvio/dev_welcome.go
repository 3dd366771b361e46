package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/reenvio/reenvio/internal/config"
)

// welcome says what runs, where everything is and what to try.
func (n *narrator) welcome(f *devFile, dir, page string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts("Webhooks", demoOK+"     takes every event", demoFlaky+"  refuses each event twice",
		demoDown+"   always fails: two events die, and the tenth failure in a row pauses it")
	n.facts("Broker", strings.Join(f.Brokers, ","))
	n.facts("Page", page)
	n.facts("Metrics, health", fmt.Sprintf("http://127.0.0.1:%d/metrics  /livez  /readyz", f.Ports.Admin))
	n.facts("Data", relative(dir))
	fmt.Fprintln(n.w, "\nTry in a second terminal, in this directory:")
	if here, err := filepath.Abs(defaultDataDir); err != nil || here != dir { // where clients look by themselves
		for _, line := range exports(f) {
			fmt.Fprintln(n.w, "  "+line)
		}
	}
	for _, command := range []string{
		"status",
		"webhooks list",
		"send --webhook " + demoOK + ` --data '{"hello":"world"}'`,
		"send --webhook " + demoFlaky + ` --data '{"hello":"again"}'`,
		"dlq list",
		"webhooks resume " + demoDown,
		"webhooks pause " + demoOK,
	} {
		fmt.Fprintln(n.w, "  "+n.self+" "+command)
	}
	fmt.Fprintln(n.w, "\nCtrl-C ends it; the next start goes on where this one stopped.")
	for _, id := range []string{demoOK, demoFlaky, demoDown} {
		if n.paused[id] {
			fmt.Fprintf(n.w, "%s is paused, as it was.\n", n.bad.Render(id))
		}
	}
	fmt.Fprintln(n.w)
}

// facts are lines with one name.
func (n *narrator) facts(name string, lines ...string) {
	for _, line := range lines {
		fmt.Fprintf(n.w, "%s  %s\n", n.dim.Render(fmt.Sprintf("%-15s", name)), line)
		name = ""
	}
}

// exports are the settings of a client that can't find the data directory by itself.
func exports(f *devFile) []string {
	s := defaultSettings()
	base := f.base("", false)
	var lines []string
	for _, field := range config.Fields(&s) {
		if value, set := base.Values[field.Key]; set && value != field.Text() {
			lines = append(lines, fmt.Sprintf("export %s=%s", config.Variable(field.Key), quoted(value)))
		}
	}
	return lines
}

// quoted is a word for the shell.
func quoted(value string) string {
	if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return !strings.ContainsRune(plainRunes, r) }) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:/_-"

// selfCommand is how a person starts this very program from this directory: what is printed must work when it is pasted.
func selfCommand() string {
	const name = "reenvio"
	self, err := os.Executable()
	if err != nil {
		return name
	}
	if found, err := exec.LookPath(name); err == nil && sameFile(found, self) {
		return name
	}
	if strings.Contains(self, "go-build") { // go run: the file is gone when it ends
		return "go run ./cmd/" + name
	}
	short := relative(self)
	if !strings.ContainsRune(short, filepath.Separator) {
		short = "." + string(filepath.Separator) + short
	}
	return quoted(short)
}

// relative is a shorter name for what lies in or below the working directory.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
