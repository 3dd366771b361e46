package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// what became of the tests.
type what string

const (
	passed    what = "survived"
	failed    what = "caught"
	broken    what = "does not build"
	panicked  what = "panicked"
	hung      what = "hung"
	noTest    what = "no test ran"
	outOfDate what = "out of date"
)

type verdict struct {
	what  what
	tests []string // that failed
	told  string   // the end of what they printed
}

func (v verdict) caught() bool { return v.what == failed }

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Test, Output string
}

var (
	crashed = regexp.MustCompile(`^(panic:|fatal error:|SIG[A-Z]+:)`)
	timeout = regexp.MustCompile(`^panic: test timed out`)
)

// judge reads what go test -json printed.
func judge(out []byte) verdict {
	v := verdict{what: noTest}
	var told []string
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			told = append(told, string(line))
			continue
		}
		told = append(told, e.Output)
		switch {
		case e.Action == "build-fail":
			v.what = broken
		case v.what == broken:
		case timeout.MatchString(e.Output):
			v.what = hung
		case v.what != hung && crashed.MatchString(e.Output):
			v.what = panicked
		case v.what == hung, v.what == panicked, e.Test == "":
		case e.Action == "pass" && v.what == noTest:
			v.what = passed
		case e.Action == "fail":
			v.what = failed
			if name, _, _ := strings.Cut(e.Test, "/"); !slices.Contains(v.tests, name) {
				v.tests = append(v.tests, name)
			}
		}
	}
	v.told = strings.Join(told[max(0, len(told)-40):], "")
	return v
}
