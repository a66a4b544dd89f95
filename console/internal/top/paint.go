package top

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// enter goes to the alternate screen, without a cursor and without wrapping; leave goes back.
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// painter writes only the lines that have changed, so that nothing flickers. It is used by one goroutine.
type painter struct {
	to    io.Writer
	shown []string // what stands on the screen; nil when that is not known
}

// paint makes the screen show lines.
func (p *painter) paint(lines []string) error {
	var b strings.Builder
	if len(lines) != len(p.shown) {
		p.shown = nil
		b.WriteString("\x1b[2J")
	}
	for i, line := range lines {
		if p.shown == nil && line == "" || p.shown != nil && p.shown[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[K", i+1, line)
	}
	p.shown = slices.Clone(lines)
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(p.to, b.String())
	return err
}

// forget makes the next paint write everything.
func (p *painter) forget() { p.shown = nil }
