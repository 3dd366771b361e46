// Command mutants proves that the tests can fail: it breaks a promise in the code, one
// at a time, and has the test that must notice run against it.
//
//	make mutants
//	make mutants MUTANT=lease
//
// The tree itself is never touched: a mutant is an overlay (go help build), a file in
// a temporary directory in place of one of the tree. What it refuses: a test that fails
// because the mutant does not build, panics or hangs. That shows nothing of the test's
// own checks.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	only := flag.String("only", "", "only the mutants whose names match this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	survived, err := run(ctx, *only, os.Stdout)
	stop()
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	case survived > 0:
		fmt.Fprintf(os.Stderr, "mutants: %d of them were not caught\n", survived)
		os.Exit(1)
	}
}

// result is what became of one mutant.
type result struct {
	mutant
	verdict verdict
	took    time.Duration
}

func run(ctx context.Context, only string, out io.Writer) (survived int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return 0, fmt.Errorf("finding the module: %w", err)
	}
	w := workshop{root: filepath.Dir(strings.TrimSpace(string(gomod)))}
	if w.dir, err = os.MkdirTemp("", "reenvio-mutants-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(w.dir) }()
	var chosen []mutant
	for _, m := range mutants {
		if match.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no mutant has a name that matches %q", only)
	}
	if err := w.healthy(ctx, chosen); err != nil {
		return 0, err
	}
	var results []result
	for i, m := range chosen {
		fmt.Fprintf(os.Stderr, "%d of %d: %s\n", i+1, len(chosen), m.name)
		began := time.Now()
		v := w.try(ctx, m)
		if ctx.Err() != nil {
			return 0, fmt.Errorf("interrupted at %q", m.name)
		}
		results = append(results, result{m, v, time.Since(began)})
		if !v.caught() {
			survived++
			fmt.Fprintf(os.Stderr, "%s: %s\n%s\n", m.name, v.what, v.told)
		}
	}
	return survived, table(out, results)
}

func table(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTANT\tBREAKS\tCAUGHT BY\tSECONDS")
	for _, r := range results {
		by := strings.Join(r.verdict.tests, ", ")
		if !r.verdict.caught() {
			by = strings.ToUpper(string(r.verdict.what)) + " (" + r.run + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\n", r.name, r.promise, by, r.took.Seconds())
	}
	return w.Flush()
}
