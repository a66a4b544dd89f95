package screen

// Paint is what a text means; a terminal with colours shows it.
type Paint int

// The meanings that have a colour.
const (
	Plain Paint = iota
	Good
	Bad
	Warn
	Faint
	Strong
)

// Style is what the output can show.
type Style struct {
	// Width is the number of columns; 0 when it is no terminal and nothing need fit.
	Width int
	// Colour is true when colours may be written.
	Colour bool
}

// Paint returns a cleaned text in the colour of its meaning.
func (s Style) Paint(p Paint, text string) string {
	if !s.Colour || p == Plain || text == "" {
		return text
	}
	return p.code() + text + "\x1b[0m"
}

func (p Paint) code() string {
	switch p {
	case Good:
		return "\x1b[32m"
	case Bad:
		return "\x1b[31m"
	case Warn:
		return "\x1b[33m"
	case Faint:
		return "\x1b[2m"
	case Strong:
		return "\x1b[1m"
	default:
		return ""
	}
}
