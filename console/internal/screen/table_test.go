package screen_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func sample() *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "NAME", Flexible: true}, {Title: "N", Right: true}, {Title: "NOTE", Flexible: true, Spare: 2}, {Title: "X", Spare: 1},
	}}
	t.Add(screen.Text("日本語のフィードの名前"), screen.Text("12"), screen.Text("a note of some length"), screen.Text("x"))
	t.Add(screen.Cell{Text: "b\x1b", Paint: screen.Bad}, screen.Text("7"), screen.Text(""), screen.Text(""))
	return t
}

// A note stands below its row and is wrapped; a value of fields is, beside its name.
func TestNotes(t *testing.T) {
	t.Parallel()
	table := sample()
	table.Note("", screen.Plain)
	table.Note("why it is so, at some length and \x1b[2J clean", screen.Plain)
	var fields screen.Fields
	fields.Add("Reason", "a value that is far too long for a line")
	fields.AddLines("Whole", []string{"a line that is shown as it is, however long"})
	var out bytes.Buffer
	if err := errors.Join(table.Write(&out, screen.Style{Width: 30}), fields.Write(&out, screen.Style{Width: 30})); err != nil {
		t.Fatal(err)
	}
	const want = "  why it is so, at some length\n  and \\x1b[2J clean\n" +
		"Reason  a value that is far\n        too long for a line\nWhole   a line that is shown as it is, however long\n"
	if !strings.HasSuffix(out.String(), "7\n"+want) {
		t.Errorf("got\n%s", out.String())
	}
}

// A table is aligned by what its characters take on the screen, fits the terminal by shortening and then by leaving out, and
// writes no hostile byte and no space at the end of a line.
func TestTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		style screen.Style
		want  string
	}{
		"no terminal": {screen.Style{}, "" +
			"NAME                     N  NOTE                   X\n" +
			"日本語のフィードの名前  12  a note of some length  x\n" +
			"b\\x1b                    7\n"},
		"shortened": {screen.Style{Width: 36}, "" +
			"NAME            N  NOTE            X\n" +
			"日本語のフィ…  12  a note of som…  x\n" +
			"b\\x1b           7\n"},
		"left out": {screen.Style{Width: 20}, "" +
			"NAME            N  X\n" +
			"日本語のフィ…  12  x\n" +
			"  note a note of so…\n" +
			"b\\x1b           7\n"},
		"hopeless": {screen.Style{Width: 9}, "" +
			"NAME\n" +
			"日本語の…\n" +
			"  n 12\n" +
			"  note a…\n" +
			"  x x\n" +
			"b\\x1b\n" +
			"  n 7\n"},
		"colour": {screen.Style{Colour: true}, "" +
			"\x1b[2mNAME\x1b[0m                     \x1b[2mN\x1b[0m  \x1b[2mNOTE\x1b[0m                   \x1b[2mX\x1b[0m\n" +
			"日本語のフィードの名前  12  a note of some length  x\n" +
			"\x1b[31mb\\x1b\x1b[0m                    7\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := sample().Write(&out, c.style); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got\n%swant\n%s", out.String(), c.want)
			}
		})
	}
}

// On every terminal of some width no line is wider than the terminal.
func TestTableFits(t *testing.T) {
	t.Parallel()
	for width := 9; width < 70; width++ {
		var out bytes.Buffer
		if err := sample().Write(&out, screen.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if got := screen.Width(strings.TrimSuffix(line, "\n")); got > width {
				t.Errorf("width %d: a line takes %d columns: %q", width, got, line)
			}
		}
	}
}

// A wrapped text has no line that is too wide, loses nothing but the spaces where it is broken, and breaks between words.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "one", "a few short words", "日本語のフィードの名前 b", strings.Repeat("x", 50), "a " + strings.Repeat("é́", 30)} {
		for columns := 2; columns < 60; columns++ {
			lines := screen.Wrap(text, columns)
			for _, line := range lines {
				if screen.Width(line) > columns {
					t.Errorf("%q in %d columns: %q is too wide", text, columns, line)
				}
			}
			if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != strings.ReplaceAll(text, " ", "") {
				t.Errorf("%q in %d columns: %q", text, columns, lines)
			}
		}
	}
	if got := screen.Wrap("a few short words", 11); strings.Join(got, "|") != "a few short|words" {
		t.Errorf("got %q", got)
	}
}

// Names and values stand in two columns, and what has no value is left out.
func TestFields(t *testing.T) {
	t.Parallel()
	var f screen.Fields
	f.Add("Task", "q:1\n")
	f.Add("Empty", "")
	f.AddLines("Result", []string{"{", "}"})
	var out bytes.Buffer
	if err := f.Write(&out, screen.Style{}); err != nil {
		t.Fatal(err)
	}
	if want := "Task    q:1\\n\nResult  {\n        }\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// The line of progress is replaced, never wider than the terminal, and taken away before anything else is written.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &screen.Progress{To: &out, Width: func() int { return 8 }}
	p.Clear()
	p.Draw("日本語のフィード")
	p.Clear()
	p.Clear()
	if want := "\r\x1b[K日本語…\r\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	none := &screen.Progress{}
	none.Draw("x")
	none.Clear()
}
