package command

import (
	"fmt"
	"unicode/utf8"
)

// didYouMean is `, did you mean "x"?` for the name that is nearest to word, or empty when none is near.
func didYouMean(word string, names []string) string {
	best, least := "", 1+min(3, utf8.RuneCountInString(word)/2)
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// longestWord bounds the work of distance.
const longestWord = 64

// distance is the number of letters to insert, remove, replace or swap with their neighbour to make a into b (optimal
// string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > longestWord || len(t) > longestWord {
		return longestWord
	}
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(s)][len(t)]
}
