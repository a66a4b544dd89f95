package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s as one line that a terminal shows and does not obey: control characters, line ends, characters that
// turn the direction of text and bytes that are not UTF-8 are written as escapes such as \x1b. Results, errors and names
// come from strangers.
func Clean(s string) string {
	if !needsCleaning(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hostile(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// CleanLines cuts text at its line ends and cleans each line. A tab becomes four spaces.
func CleanLines(text string) []string {
	text = strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

func needsCleaning(s string) bool {
	if !utf8.ValidString(s) {
		return true
	}
	return strings.ContainsFunc(s, hostile)
}

// hostile reports whether a terminal might obey r, or might show the text around it in another order. The two joiners
// are let through: scripts and emoji need them, and they only shape their neighbours.
func hostile(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if r == nonJoiner || r == joiner {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
