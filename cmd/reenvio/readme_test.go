package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateTour = flag.Bool("update-tour", false, "write the output of the commands in README.md anew")

const (
	tourBegin = "<!-- tour: begin"
	tourEnd   = "<!-- tour: end"
	tourSelf  = "bin/reenvio " // how a reader of README.md starts this program
	tourStart = "make run"     // ... and `reenvio dev`
)

// step is a command of README.md with the output that stands under it.
type step struct {
	command string
	output  []string
}

// The commands of README.md do what it says they do: each is run, in the order in which a reader would, against a `reenvio dev` in this
// process, and says what stands there, but for what differs each time.
func TestTheTour(t *testing.T) {
	path, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, tour, after := cutTour(t, string(readme))
	operators := readPage(t, "../../docs/operators.md")
	s := newShell(t)
	var d *devRun
	var ports ports
	written := eachStep(tour, func(want step) []string {
		var got []string
		if want.command == tourStart {
			d = startDev(t, s, "--topics.partitions=12", fmt.Sprintf("--receiver-port=%d", shortPort(t)))
			d.await(t, d.ended, "demo-flaky", "delivered", "attempt 3")
			ports = portsOfDev(t)
			got = devStory(ports.readers(strings.ReplaceAll(d.shown(), selfCommand()+" ", tourSelf)))
		} else {
			got = strings.Split(strings.TrimRight(ports.readers(s.typed(t, ports.ours(want.command))), "\n"), "\n")
		}
		if strings.Contains(want.command, "dlq redrive") { // a reader is slower than the delivery
			d.await(t, d.ended, "orders", "delivered")
		}
		if a, b := settled(want.output), settled(got); a != b && !*updateTour {
			t.Errorf("README.md shows another output of %s (make generate mends it).\n--- README.md\n%s\n--- now\n%s", want.command, a, b)
		}
		return got
	})
	if d == nil {
		t.Fatalf("the tour in README.md doesn't begin with `%s`", tourStart)
	}
	d.wantExplained(t, operators)
	d.end(t)
	if *updateTour {
		if err := os.WriteFile(path, []byte(before+written+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func cutTour(t *testing.T, readme string) (before, tour, after string) {
	t.Helper()
	begin := strings.Index(readme, tourBegin)
	end := strings.Index(readme, tourEnd)
	if begin < 0 || end < begin {
		t.Fatalf("README.md has no %q, then %q", tourBegin, tourEnd)
	}
	return readme[:begin], readme[begin:end], readme[end:]
}

// eachStep passes each command and its output to do, and puts what do returns in the place of the output. A command is an indented line
// that begins with a dollar; its output is what is indented below it.
func eachStep(tour string, do func(step) []string) string {
	const indent = "    "
	var out []string
	lines := strings.Split(tour, "\n")
	for i := 0; i < len(lines); {
		command, isStep := strings.CutPrefix(lines[i], indent+"$ ")
		out = append(out, lines[i])
		i++
		if !isStep {
			continue
		}
		s := step{command: command}
		for ; i < len(lines) && (lines[i] == "" || strings.HasPrefix(lines[i], indent)) && !strings.HasPrefix(lines[i], indent+"$ "); i++ {
			s.output = append(s.output, strings.TrimPrefix(lines[i], indent))
		}
		for _, line := range do(s) {
			out = append(out, strings.TrimRight(indent+line, " "))
		}
		out = append(out, "")
	}
	return strings.Join(out, "\n")
}

// typed runs a command line of README.md, and returns all that it says, but for where it found its broker.
func (s *shell) typed(t *testing.T, command string) string {
	t.Helper()
	line, ours := strings.CutPrefix(command, tourSelf)
	if !ours {
		t.Fatalf("the tour in README.md has a command that is none of ours: %s", command)
	}
	var said bytes.Buffer
	code := run(t.Context(), &cli{stdin: strings.NewReader(""), stdout: &said, stderr: &said, environ: s.environ}, words(line))
	if code == exitUsage {
		t.Errorf("%s can't be meant: %s", command, &said)
	}
	return strings.ReplaceAll(usingDev.ReplaceAllString(said.String(), ""), caller(), "cli:you")
}

var usingDev = regexp.MustCompile("(?m)^Using the broker of `reenvio dev`.*\n")

// words splits a command line as a shell does, as far as README.md needs it.
func words(line string) []string {
	var split []string
	for _, found := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		split = append(split, found[1]+found[2])
	}
	return split
}

// ports are those of a `reenvio dev` on free ports, beside those that it has by default, which README.md shows.
type ports [][2]string

func portsOfDev(t *testing.T) ports {
	t.Helper()
	file, err := findDev(filepath.Join(defaultDataDir, devFileName))
	if err != nil || file == nil {
		t.Fatalf("dev.json: %v, %v", file, err)
	}
	pair := func(here, there int) [2]string {
		return [2]string{fmt.Sprintf("127.0.0.1:%d", here), fmt.Sprintf("127.0.0.1:%d", there)}
	}
	return ports{pair(file.Ports.Broker, 7092), pair(file.Ports.Admin, 7070), pair(file.Ports.Receiver, 7091), pair(file.Ports.Page, 7090)}
}

// shortPort is a free port of as many digits as those that a reader sees: it is in tables, whose columns it widens.
func shortPort(t *testing.T) int {
	t.Helper()
	for port := 7091; port < 9999; port += 17 {
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port of four digits is free")
	return 0
}

func (p ports) readers(text string) string {
	for _, pair := range p {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

func (p ports) ours(text string) string {
	for _, pair := range p {
		text = strings.ReplaceAll(text, pair[1], pair[0])
	}
	return text
}

// shown is what is on the screen now.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// devStory is what `reenvio dev` says at its start, and then of one webhook until its event is delivered, with "..." for the rest.
func devStory(text string) []string {
	var story []string
	welcome := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		told := clockAtStart.MatchString(line)
		welcome = welcome && !told
		switch {
		case welcome, told && strings.Contains(line, demoFlaky):
			story = append(story, line)
			if told && strings.Contains(line, "delivered") {
				return append(story, leftOut)
			}
		case story[len(story)-1] != leftOut:
			story = append(story, leftOut)
		}
	}
	return story
}

const leftOut = "..."

var clockAtStart = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} `)

// settled is the output without what differs each time, so that two can be compared.
func settled(lines []string) string {
	var out []string
	for _, line := range lines {
		for _, v := range varies {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		if line = strings.TrimSpace(line); line != "" && line != leftOut {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

var varies = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d{3})?`), "TIME"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "SECRET"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ID"},
	{regexp.MustCompile(`, \d+ ms late`), ""}, // it may be in time
	{regexp.MustCompile(`<?\b\d+(\.\d+)? ?m?s\b`), "DURATION"},
	{regexp.MustCompile(`\b\d+/\d+\b`), "PLACE"},
	{regexp.MustCompile(`\bredrive-\w+-\w+`), "RUN"},
	{regexp.MustCompile(`(?i)\b(offset) +\d+`), "$1 N"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`-{3,}`), "-"},
}
