package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// growingTable is a table whose later rows are not known yet. What is known settles the widths; a longer cell moves those behind it.
type growingTable struct {
	w      io.Writer
	widths []int
}

func newGrowingTable(w io.Writer, headings []string, rows [][]string) (*growingTable, error) {
	t := &growingTable{w: w, widths: make([]int, len(headings))}
	rows = append([][]string{headings}, rows...)
	for _, row := range rows {
		t.learn(row)
	}
	for _, row := range rows {
		if err := t.add(row); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *growingTable) learn(row []string) {
	for i, cell := range row {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
	}
}

func (t *growingTable) add(row []string) error {
	t.learn(row)
	var line strings.Builder
	for i, cell := range cleaned(row) {
		fmt.Fprintf(&line, "%-*s  ", t.widths[i], cell)
	}
	_, err := fmt.Fprintln(t.w, strings.TrimRight(line.String(), " "))
	return err
}
