package screen

import (
	"fmt"
	"io"
	"strings"
)

// Progress is one line of a terminal that is drawn again and again. The zero value with a nil writer draws nothing. It is
// used by one goroutine.
type Progress struct {
	// To is the terminal; nil draws nothing.
	To io.Writer
	// Width is the number of columns that the terminal has now.
	Width func() int

	drawn bool
}

// narrowest is the width that is assumed when a terminal does not say.
const narrowest = 80

// Draw replaces the line by a cleaned text.
func (p *Progress) Draw(text string) {
	if p.To == nil {
		return
	}
	width := narrowest
	if p.Width != nil && p.Width() > 0 {
		width = p.Width()
	}
	// One column stays free: a full line makes some terminals begin a new one.
	_, _ = fmt.Fprint(p.To, "\r\x1b[K", Cut(text, width-1)) // a line of progress that cannot be drawn is no loss
	p.drawn = true
}

// Clear takes the line away, before anything else is written to the terminal.
func (p *Progress) Clear() {
	if p.To == nil || !p.drawn {
		return
	}
	_, _ = fmt.Fprint(p.To, "\r\x1b[K") // as in Draw
	p.drawn = false
}

// Bar draws how much of total is done, in the given number of columns, brackets included. A total of 0 is not known and has no bar.
func Bar(done, total uint64, columns int) string {
	room := columns - len("[]")
	if total == 0 || room <= 0 {
		return ""
	}
	part := float64(min(done, total)) / float64(total)
	full := int(part * float64(room))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", room-full) + "]"
}
