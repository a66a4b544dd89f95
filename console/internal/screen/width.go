package screen

import (
	"strings"

	"github.com/rivo/uniseg"
)

// mark stands for what was cut off.
const mark = "…"

// Width is the number of columns that a cleaned text takes on a terminal; wide characters take two.
func Width(s string) int { return uniseg.StringWidth(s) }

// maxCluster is the longest character, with all that is combined with it, that Cut shows, in bytes.
const maxCluster = 64

// Cut shortens a cleaned text to at most columns, with a mark for what is missing. It never splits a character from what
// is combined with it, and it looks at no more of a long text than it shows.
func Cut(s string, columns int) string {
	used, kept, state := 0, 0, -1 // kept is how much can stay in front of the mark
	for rest := s; len(rest) > 0; {
		var cluster string
		var width int
		cluster, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		used += width
		if used > columns || len(cluster) > maxCluster {
			if columns <= 0 {
				return ""
			}
			return s[:kept] + mark
		}
		if used <= columns-Width(mark) {
			kept = len(s) - len(rest)
		}
	}
	return s
}

// Pad adds spaces up to columns, on the left when right is true.
func Pad(s string, columns int, right bool) string {
	missing := strings.Repeat(" ", max(0, columns-Width(s)))
	if right {
		return missing + s
	}
	return s + missing
}
