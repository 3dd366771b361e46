package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reenvio/reenvio/internal/config"
)

// welcome says where everything is and what to try.
func (n *narrator) welcome(f *devFile, dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts([][2]string{
		{"Broker", strings.Join(f.Brokers, ",")},
		{"Metrics, health", fmt.Sprintf("http://127.0.0.1:%d/metrics  /livez  /readyz", f.Ports.Admin)},
		{"Data", dir},
	})
	fmt.Fprintln(n.w, "\nTry in a second terminal, in this directory:")
	if here, err := filepath.Abs(defaultDataDir); err != nil || here != dir { // where clients look by themselves
		for _, line := range exports(f) {
			fmt.Fprintln(n.w, "  "+line)
		}
	}
	for _, command := range []string{
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

func (n *narrator) facts(facts [][2]string) {
	for _, fact := range facts {
		fmt.Fprintf(n.w, "%s  %s\n", n.dim.Render(fmt.Sprintf("%-15s", fact[0])), fact[1])
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
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, self); err == nil && !slices.Contains(strings.Split(relative, string(filepath.Separator)), "..") {
			return "." + string(filepath.Separator) + relative
		}
	}
	return self
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
