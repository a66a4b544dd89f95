package demo

import (
	"fmt"
	"io"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// teller writes what a newcomer reads.
type teller struct {
	out   io.Writer
	style screen.Style
	step  int
}

// begin opens the next step.
func (t *teller) begin(format string, args ...any) {
	t.step++
	fmt.Fprintf(t.out, "\n%s\n", t.style.Paint(screen.Strong, fmt.Sprintf("%d. %s", t.step, screen.Clean(fmt.Sprintf(format, args...)))))
}

// say writes a line of the step.
func (t *teller) say(format string, args ...any) {
	text := screen.Clean(fmt.Sprintf(format, args...))
	if text != "" {
		text = "   " + text
	}
	fmt.Fprintln(t.out, text)
}

// proved writes what has been checked.
func (t *teller) proved(format string, args ...any) {
	fmt.Fprintf(t.out, "   %s %s\n", t.style.Paint(screen.Good, "ok"), screen.Clean(fmt.Sprintf(format, args...)))
}

// row writes a row of the table of feeds.
func (t *teller) row(state screen.Paint, cells ...string) {
	widths := []int{15, 10, 13, 8, 7, 40}
	fmt.Fprint(t.out, "  ")
	for i, width := range widths {
		text := screen.Cut(screen.Clean(cells[i]), width)
		if i < len(widths)-1 {
			text = screen.Pad(text, width, false)
		}
		paint := screen.Plain
		if i == 1 {
			paint = state
		}
		fmt.Fprint(t.out, " ", t.style.Paint(paint, text))
	}
	fmt.Fprintln(t.out)
}
