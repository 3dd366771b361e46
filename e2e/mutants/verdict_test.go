package main

import (
	"slices"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const (
		run  = `{"Action":"run","Test":"TestA"}` + "\n"
		pass = `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"pass"}` + "\n"
		fail = `{"Action":"fail","Test":"TestA/1"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}` + "\n"
	)
	says := func(line string) string { return `{"Action":"output","Test":"TestA","Output":"` + line + `\n"}` + "\n" }
	for _, c := range []struct {
		name, out string
		want      what
	}{
		{"a check fails", run + says("    a_test.go:1: lost") + fail, failed},
		{"all is well", run + pass, passed},
		{"a check that speaks of a panic", run + says("    a_test.go:1: panic: no") + fail, failed},
		{"the mutant panics", run + says("panic: nil map") + fail, panicked},
		{"the runtime ends it", run + says("fatal error: all goroutines are asleep") + fail, panicked},
		{"it hangs", run + says("panic: test timed out after 4m0s") + says("panic: again") + fail, hung},
		{"it does not build", `{"Action":"build-output","Output":"x"}` + "\n" + `{"Action":"build-fail"}` + "\n" + `{"Action":"fail"}` + "\n", broken},
		{"nobody has such a test", `{"Action":"output","Output":"testing: warning: no tests to run\n"}` + "\n" + `{"Action":"pass"}` + "\n", noTest},
		{"the go command itself fails", "go: no such tool\n", noTest},
	} {
		v := judge([]byte(c.out))
		if v.what != c.want || v.caught() != (c.want == failed) {
			t.Errorf("%s: %s, want %s", c.name, v.what, c.want)
		}
		if want := []string{"TestA"}; v.caught() && !slices.Equal(v.tests, want) {
			t.Errorf("%s: caught by %v, want %v", c.name, v.tests, want)
		}
	}
}

func TestOutOfDate(t *testing.T) {
	m := mutant{file: "x.go", old: "a", new: "b"}
	if got, err := m.apply("cac"); got != "cbc" || err != nil {
		t.Errorf("applied: %q, %v", got, err)
	}
	for _, source := range []string{"cc", "aa"} {
		if _, err := m.apply(source); err == nil || !strings.Contains(err.Error(), "out of date") {
			t.Errorf("%q: %v, want that it is out of date", source, err)
		}
	}
}

// A name stands for one mutant, and each row is whole.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		seen[m.name] = true
		if m.promise == "" || m.file == "" || m.old == "" || m.old == m.new || m.run == "" || !strings.HasPrefix(m.pkg, "./") {
			t.Errorf("%q is not whole", m.name)
		}
	}
}
