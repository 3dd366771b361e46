package config

import (
	"slices"
	"strings"
)

// Nearest returns the key of a setting of the struct that is nearest to the given one; empty when none is near.
func Nearest(of any, key string) string { return fieldsOf(of).nearest(key) }

// nearest returns the known key with the fewest edits to the given one; among equals the first in the struct's order. A key that begins
// with it counts as nearest: who sets kafka meant something in it; and so does the key without its section. Where nothing is near it is empty:
// a far-fetched guess sends people the wrong way. How many edits are near follows from the last part: a section in common brings nothing nearer.
func (f fields) nearest(key string) string {
	best, bestDistance := "", len(key[strings.LastIndex(key, delimiter)+1:])/3+2
	for _, field := range f.list {
		begins := strings.HasPrefix(field.Key, key+delimiter) || strings.Contains(key, delimiter) && strings.HasPrefix(field.Key, key)
		if begins || strings.HasSuffix(field.Key, delimiter+key) {
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
