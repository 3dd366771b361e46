package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/bench"
	"github.com/reenvio/reenvio/internal/record"
)

// benchReport is what -o json prints of every benchmark.
type benchReport struct {
	Version string      `json:"version"`
	Machine string      `json:"machine"`
	Cores   int         `json:"cores"`
	At      record.Time `json:"at"`
	Passed  bool        `json:"passed"`
	Rows    []bench.Row `json:"rows"`
}

const benchHelp = `It needs no configuration and no broker: an embedded broker, receivers and dispatchers run on this machine, on loopback. What it needs is the
machine for itself: what other programs take of it is in the figures.

Progress goes to standard error, the result to standard output. A figure with a bound says whether it holds; when one does not, the exit
status is 1. -o json prints one object; each of its rows has a name, what was done, figures with their bounds, and whether it passed.`

func newBench(c *cli) *cobra.Command {
	return group("bench", "Measure on this machine what Reenvio promises", newBenchIsolation(c), newBenchParked(c))
}

func newBenchIsolation(c *cli) *cobra.Command {
	o := bench.IsolationDefaults()
	cmd := &cobra.Command{
		Use:   "isolation",
		Short: "What webhooks that are well notice of those that are not",
		Long: fmt.Sprintf(`Measure what webhooks that are well notice of those that are not.

In each of %d rounds it first measures the capacity of the machine: %d webhooks, all well, as fast as it goes. Then, at %.0f %% of that,
phases of which each second one is disturbed: %d of the webhooks are bad in one way. The others must keep %.2f of their undisturbed rate, and
have at most %.1f times their undisturbed p99 latency, from when an event was to be produced until it is at its receiver. What counts are the
medians over the rounds. All ways to be bad take about 9 minutes, one takes 2.

%s

%s`, o.Rounds, o.Webhooks, o.Share*100, o.Disturbed, bench.KeepsRate, bench.KeepsP99, badHelp(), benchHelp),
		Example: `  reenvio bench isolation
  reenvio bench isolation --bad slow,error     # two of the ways to be bad
  reenvio bench isolation -o json | jq -r '.rows[] | select(.passed | not).name'`,
		Args: noArgs,
	}
	bad := cmd.Flags().StringSlice("bad", nil, "ways to be bad, one after the other (default: all of them)")
	_ = cmd.RegisterFlagCompletionFunc("bad", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return bench.Badnesses(), cobra.ShellCompDirectiveNoFileComp
	})
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.Bad, o.Progress = *bad, c.say
		if err := o.Validate(); err != nil {
			return usageError{err}
		}
		rows, err := bench.Isolation(cmd.Context(), o)
		if err != nil {
			return err
		}
		return c.printBench(rows, *out)
	}
	return cmd
}

func badHelp() string {
	var lines []string
	for _, name := range bench.Badnesses() {
		lines = append(lines, fmt.Sprintf("  %-7s %s", name, bench.AboutBad(name)))
	}
	return strings.Join(lines, "\n")
}

func newBenchParked(c *cli) *cobra.Command {
	o := bench.ParkedDefaults()
	cmd := &cobra.Command{
		Use:   "parked",
		Short: "What very many paused webhooks cost a dispatcher",
		Long: fmt.Sprintf(`Measure what %d paused webhooks with %d parked events cost a dispatcher: its memory, and how long it takes from its start
until it delivers. Then, while others get events, one more webhook is resumed that has %d events among all those: how long until its first
one comes.

The dispatcher runs in a process of its own, as `+"`reenvio dispatcher`"+` does. The events are in the memory of the embedded broker: it needs
about 2 GB.

%s`, o.Webhooks, o.Webhooks*o.Each, o.Return, benchHelp),
		Example: `  reenvio bench parked
  reenvio bench parked -o json | jq '.rows[].figures[] | {name, value, unit}'`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		o.Progress = c.say
		if o.Binary, err = os.Executable(); err != nil {
			return fmt.Errorf("finding this program, to start a dispatcher with: %w", err)
		}
		rows, err := bench.Parked(cmd.Context(), o)
		if err != nil {
			return err
		}
		return c.printBench(rows, *out)
	}
	return cmd
}

// say writes a line on standard error.
func (c *cli) say(format string, args ...any) {
	fmt.Fprintf(c.stderr, "%s\n", clean(fmt.Sprintf(format, args...)))
}

func (c *cli) printBench(rows []bench.Row, out format) error {
	report := benchReport{
		Version: version(), Machine: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), At: record.At(time.Now()),
		Passed: bench.Passed(rows), Rows: rows,
	}
	if err := c.printReport(report, out); err != nil {
		return err
	}
	if !report.Passed {
		return errNotDone
	}
	return nil
}

func (c *cli) printReport(report benchReport, out format) error {
	if out == formatJSON {
		return printJSON(c.stdout, report)
	}
	var table [][]string
	var about, problems []string
	for _, r := range report.Rows {
		about = append(about, r.Name+": "+r.About+".")
		if r.Problem != "" {
			problems = append(problems, r.Name+": "+r.Problem+".")
		}
		for _, f := range r.Figures {
			table = append(table, []string{r.Name, f.Name, figureText(f), figureBound(f), figureVerdict(f)})
		}
	}
	if err := printTable(c.stdout, []string{"ROW", "FIGURE", "VALUE", "BOUND", "VERDICT"}, table); err != nil {
		return err
	}
	for _, line := range append(append([]string{""}, about...), problems...) {
		fmt.Fprintln(c.stdout, clean(line))
	}
	return nil
}

// figureText has three digits that say something, and no more.
func figureText(f bench.Figure) string {
	digits := 0
	for v := f.Value; v != 0 && v > -100 && v < 100 && digits < 2 && f.Value != float64(int64(f.Value)); v *= 10 {
		digits++
	}
	return strings.TrimSpace(strconv.FormatFloat(f.Value, 'f', digits, 64) + " " + f.Unit)
}

func figureBound(f bench.Figure) string {
	number := func(v float64) string { return strings.TrimSpace(strconv.FormatFloat(v, 'f', -1, 64) + " " + f.Unit) }
	switch b := f.Bound; {
	case b == nil:
		return ""
	case b.AtLeast != nil:
		return ">= " + number(*b.AtLeast)
	default:
		return "<= " + number(*b.AtMost)
	}
}

func figureVerdict(f bench.Figure) string {
	switch {
	case f.Bound == nil:
		return ""
	case f.OK():
		return "ok"
	}
	return "FAILED"
}
