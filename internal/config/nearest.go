package config

import (
	"slices"
	"strings"
)

// nearest returns the known key with the fewest edits to the given one; among equals the first in the struct's order. A key inside
// the section of that name counts as nearest: who sets kafka meant something in it; and so does the key without its section. Where nothing is
// near it is empty: a far-fetched guess sends people the wrong way.
func (f fields) nearest(key string) string {
	best, bestDistance := "", len(key)/3+2
	for _, field := range f.list {
		if strings.HasPrefix(field.Key, key+delimiter) || strings.HasSuffix(field.Key, delimiter+key) {
			return field.Key
		}
		if d := distance(key, field.Key); d < bestDistance {
			best, bestDistance = field.Key, d
		}
	}
	return best
}

// distance is Levenshtein's: single insertions, deletions and replacements.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{replaced, row[j] + 1, row[j+1] + 1})
		}
	}
	return row[len(b)]
}
