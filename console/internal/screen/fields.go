package screen

import (
	"io"
	"strings"
)

// Fields is a list of names and values, one under the other.
type Fields struct {
	rows []field
}

type field struct {
	name  string
	lines []string
	paint Paint
	whole bool // lines that are shown as they are, however long
}

// Add appends a value, cleaned, which is wrapped where it is too long for a line. An empty value is left out.
func (f *Fields) Add(name, value string) { f.AddPainted(name, value, Plain) }

// AddPainted is Add in the colour of a meaning.
func (f *Fields) AddPainted(name, value string, p Paint) {
	if value != "" {
		f.rows = append(f.rows, field{name: name, lines: []string{Clean(value)}, paint: p})
	}
}

// AddLines appends a value of several lines that are clean already.
func (f *Fields) AddLines(name string, lines []string) {
	if len(lines) > 0 {
		f.rows = append(f.rows, field{name: name, lines: lines, whole: true})
	}
}

// Write writes the fields with their values aligned.
func (f *Fields) Write(w io.Writer, style Style) error {
	widest := 0
	for _, row := range f.rows {
		widest = max(widest, Width(row.name))
	}
	var b strings.Builder
	for _, row := range f.rows {
		b.WriteString(style.Paint(Faint, row.name))
		b.WriteString(strings.Repeat(" ", widest-Width(row.name)+gap))
		lines := row.lines
		if !row.whole {
			lines = style.wrap(lines[0], widest+gap)
		}
		for i, line := range lines {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", widest+gap))
			}
			b.WriteString(style.Paint(row.paint, line))
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
