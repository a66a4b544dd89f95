package screen

import "strings"

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
