package screen

import "strings"

// leastText is the width below which a text beside or below something is not wrapped closer, in columns.
const leastText = 20

// wrap breaks a cleaned text that stands behind an indentation, where the width is known and too little for it.
func (s Style) wrap(text string, indent int) []string {
	room := max(leastText, s.Width-indent)
	if s.Width <= 0 || Width(text) <= room {
		return []string{text}
	}
	return Wrap(text, room)
}

// Wrap breaks a cleaned text into lines of at most columns, between words where it can. It returns at least one line.
func Wrap(text string, columns int) []string {
	columns = max(2, columns) // a wide character takes two
	var lines []string
	line := ""
	flush := func() {
		lines = append(lines, line)
		line = ""
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && Width(line)+1+Width(word) > columns {
			flush()
		}
		for Width(word) > columns { // one that no line can hold
			head := strings.TrimSuffix(Cut(word, columns+Width(mark)), mark)
			for head != "" && Width(head) > columns {
				head = strings.TrimSuffix(Cut(head, Width(head)-1), mark)
			}
			if head == "" {
				break
			}
			lines = append(lines, head)
			word = word[len(head):]
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" || len(lines) == 0 {
		flush()
	}
	return lines
}
