package screen

import (
	"io"
	"slices"
	"strings"
)

// Column is one column of a table.
type Column struct {
	Title string
	// Right aligns it to the right, as numbers are.
	Right bool
	// Flexible lets it be shortened on a narrow terminal.
	Flexible bool
	// Spare says which columns leave the row first when shortening is not enough: the highest, and those with 0 last.
	Spare int
}

// Cell is one text of a table.
type Cell struct {
	Text  string
	Paint Paint
}

// Table is rows under titles. It cleans what it is given.
type Table struct {
	Columns []Column
	rows    [][]Cell
	notes   map[int][]Cell // below a row, by its number
}

const (
	gap         = 2  // columns between two columns
	minFlexible = 10 // columns that a shortened column keeps
)

// Add appends a row of as many cells as there are columns.
func (t *Table) Add(cells ...Cell) {
	row := make([]Cell, len(t.Columns))
	for i := range min(len(row), len(cells)) {
		row[i] = Cell{Text: Clean(cells[i].Text), Paint: cells[i].Paint}
	}
	t.rows = append(t.rows, row)
}

// Note appends a text that Write puts below the last row, wrapped. An empty one is left out.
func (t *Table) Note(text string, p Paint) {
	if text == "" || len(t.rows) == 0 {
		return
	}
	if t.notes == nil {
		t.notes = map[int][]Cell{}
	}
	last := len(t.rows) - 1
	t.notes[last] = append(t.notes[last], Cell{Text: Clean(text), Paint: p})
}

// Fits reports whether all columns have room on so many, the flexible ones shortened.
func (t *Table) Fits(columns int) bool {
	shown, _ := t.fit(columns)
	return len(shown) == len(t.Columns)
}

// Text is a cell without a meaning of its own.
func Text(s string) Cell { return Cell{Text: s} }

// Write writes the table, no wider than the style's width. What has no room in a row follows below it, indented and with its
// title; what is empty or 0 there is left out.
func (t *Table) Write(w io.Writer, style Style) error {
	shown, widths := t.fit(style.Width)
	var b strings.Builder
	t.writeRow(&b, t.titles(), shown, widths, style)
	for i, row := range t.rows {
		t.writeRow(&b, row, shown, widths, style)
		t.writeRest(&b, row, shown, style)
		for _, note := range t.notes[i] {
			for _, line := range style.wrap(note.Text, gap) {
				b.WriteString(strings.Repeat(" ", gap) + style.Paint(note.Paint, line) + "\n")
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Lines returns the titles and then a line for each row, none wider than the style's width; what has no room is left out.
func (t *Table) Lines(style Style) []string {
	shown, widths := t.fit(style.Width)
	lines := make([]string, 0, len(t.rows)+1)
	for _, row := range append([][]Cell{t.titles()}, t.rows...) {
		var b strings.Builder
		t.writeRow(&b, row, shown, widths, style)
		lines = append(lines, strings.TrimSuffix(b.String(), "\n"))
	}
	return lines
}

func (t *Table) titles() []Cell {
	titles := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = Cell{Text: c.Title, Paint: Faint}
	}
	return titles
}

func (t *Table) writeRow(b *strings.Builder, row []Cell, shown []int, widths []int, style Style) {
	pending := 0 // spaces are written only before text, so that no line ends in them
	for n, i := range shown {
		if n > 0 {
			pending += gap
		}
		text := Cut(row[i].Text, widths[i])
		missing := widths[i] - Width(text)
		if t.Columns[i].Right {
			pending += missing
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			b.WriteString(style.Paint(row[i].Paint, text))
			pending = 0
		}
		if !t.Columns[i].Right {
			pending += missing
		}
	}
	b.WriteByte('\n')
}

// writeRest writes the cells that have no room in the row below it.
func (t *Table) writeRest(b *strings.Builder, row []Cell, shown []int, style Style) {
	const indent = "  "
	used := 0
	for i, cell := range row {
		if slices.Contains(shown, i) || cell.Text == "" || cell.Text == "0" {
			continue
		}
		title := strings.ToLower(t.Columns[i].Title) + " "
		room := max(1, style.Width-len(indent)-Width(title))
		text := Cut(cell.Text, room)
		need := gap + Width(title) + Width(text)
		if used > 0 && used+need <= style.Width {
			b.WriteString(strings.Repeat(" ", gap))
		} else {
			if used > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(indent)
			used = len(indent) - gap
		}
		used += need
		b.WriteString(style.Paint(Faint, title))
		b.WriteString(style.Paint(cell.Paint, text))
	}
	if used > 0 {
		b.WriteByte('\n')
	}
}

// fit returns the columns to show and the width of each column. A limit of 0 is none.
func (t *Table) fit(limit int) (shown, widths []int) {
	widths = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		shown = append(shown, i)
		widths[i] = Width(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	if limit <= 0 {
		return shown, widths
	}
	for {
		over := total(shown, widths) - limit
		if over <= 0 {
			return shown, widths
		}
		if t.shrink(shown, widths, over) {
			return shown, widths
		}
		if len(shown) == 1 {
			widths[shown[0]] = limit
			return shown, widths
		}
		shown = t.withoutSparest(shown)
	}
}

// shrink takes the missing columns from the widest flexible column first and reports whether that was enough. It changes
// nothing when it is not.
func (t *Table) shrink(shown, widths []int, over int) bool {
	room := 0
	for _, i := range shown {
		if t.Columns[i].Flexible {
			room += max(0, widths[i]-minFlexible)
		}
	}
	if room < over {
		return false
	}
	for ; over > 0; over-- {
		widest := -1
		for _, i := range shown {
			if t.Columns[i].Flexible && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		widths[widest]--
	}
	return true
}

// withoutSparest leaves one column of several out: the one that can be spared most, else the last.
func (t *Table) withoutSparest(shown []int) []int {
	sparest := len(shown) - 1
	for n, i := range shown {
		if t.Columns[i].Spare > 0 && t.Columns[i].Spare >= t.Columns[shown[sparest]].Spare {
			sparest = n
		}
	}
	return slices.Delete(slices.Clone(shown), sparest, sparest+1)
}

func total(shown, widths []int) int {
	sum := gap * max(0, len(shown)-1)
	for _, i := range shown {
		sum += widths[i]
	}
	return sum
}
