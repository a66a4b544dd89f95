package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes v as one line of JSON. Like Clean it lets nothing through that a terminal would obey: JSON allows most
// control characters in strings, so they are written as \u escapes, which mean the same.
func WriteJSON(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	line := CleanJSON(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	_, err := w.Write(append(line, '\n'))
	return err
}

// CleanJSON returns JSON that means the same as the sound JSON in data and has no hostile character in its strings. Bytes
// that are not UTF-8 become U+FFFD. White space between the values stays.
func CleanJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r >= 0x7f && hostile(r): // below, JSON has escaped them itself or they stand between values
			out = appendEscape(out, r)
		default:
			out = append(out, data[i:i+size]...)
		}
		i += size
	}
	return out
}

func appendEscape(out []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

// IndentJSON returns data as lines for a person, cleaned; data that is not JSON is cleaned as text.
func IndentJSON(data []byte) []string {
	var buf bytes.Buffer
	if err := json.Indent(&buf, data, "", "  "); err != nil {
		return CleanLines(string(data))
	}
	return CleanLines(string(CleanJSON(buf.Bytes())))
}
