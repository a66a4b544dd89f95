package settings

import "strings"

// Nearest returns the candidate that a person most likely meant by word, or "" when none is near.
func Nearest(word string, candidates []string) string {
	best, least := "", len(word)/3+2
	if len(word) > 64 {
		return ""
	}
	for _, c := range candidates {
		if d := distance(fold(word), fold(c)); d < least && d < len(c) {
			best, least = c, d
		}
	}
	return best
}

// hint is the "did you mean" that a reason ends with; empty when nothing is near.
func hint(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

func fold(word string) string {
	return strings.ReplaceAll(strings.ToLower(word), "-", "_")
}

// distance counts the letters to insert, drop, replace or swap with a neighbour (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
