package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// format is the value of -o.
type format string

const (
	formatTable format = "table" // for people; may change
	formatJSON  format = "json"  // for programs: one object, or an array for lists
)

func (f *format) String() string { return string(*f) }
func (*format) Type() string     { return "table|json" }

func (f *format) Set(text string) error {
	switch format(text) {
	case formatTable, formatJSON:
		*f = format(text)
		return nil
	}
	return fmt.Errorf("it may be table or json")
}

func outputFlag(cmd *cobra.Command) *format {
	f := formatTable
	cmd.Flags().VarP(&f, "output", "o", "table for people, json for programs")
	return &f
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printTable aligns rows under their headings.
func printTable(w io.Writer, headings []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(headings, "\t"))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(cleaned(row), "\t"))
	}
	return table.Flush()
}

// printFacts aligns name and value, leaving out what has no value.
func printFacts(w io.Writer, facts [][2]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, fact := range facts {
		if fact[1] != "" {
			fmt.Fprintln(table, fact[0]+"\t"+clean(fact[1]))
		}
	}
	return table.Flush()
}

func cleaned(cells []string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = clean(cell)
	}
	return out
}

// clean keeps text that came from outside from driving the terminal, or breaking its table.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}

// jsonArray writes an array element by element, so that a long list needs no memory. Nothing is written before the first element or the
// end: an error that comes first leaves standard output empty.
type jsonArray struct {
	w     io.Writer
	count int
}

func newJSONArray(w io.Writer) *jsonArray { return &jsonArray{w: w} }

func (a *jsonArray) add(v any) error {
	data, err := json.MarshalIndent(v, "  ", "  ")
	if err != nil {
		return err
	}
	before := ",\n  "
	if a.count == 0 {
		before = "[\n  "
	}
	a.count++
	_, err = fmt.Fprintf(a.w, "%s%s", before, data)
	return err
}

func (a *jsonArray) end() error {
	text := "\n]\n"
	if a.count == 0 {
		text = "[]\n"
	}
	_, err := fmt.Fprint(a.w, text)
	return err
}
