package feedread

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf8"
)

// dropForbidden removes the characters that XML 1.0 does not allow, wherever they stand.
func dropForbidden(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return -1
	}, text)
}

// allowed is the production Char of XML 1.0.
func allowed(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= utf8.MaxRune
}

const (
	cdataOpen    = "<![CDATA["
	cdataClose   = "]]>"
	commentOpen  = "<!--"
	commentClose = "-->"
)

// escape makes text that an XML parser accepts of text that people wrote: bad character references go, HTML entities become
// characters, bare ampersands and less-than signs are escaped. CDATA stays as it is and comments go; either without an end is
// text, for it would swallow all entries behind it.
func escape(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/16)
	ends := finder{text: text, mark: []byte(cdataClose)}
	comments := finder{text: text, mark: []byte(commentClose)}
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case hasPrefix(rest, cdataOpen):
			size, section := cdata(rest, ends.from(i+len(cdataOpen))-i)
			out = append(out, section...)
			i += size
		case hasPrefix(rest, commentOpen):
			end := comments.from(i + len(commentOpen))
			if end > len(text) {
				out = append(out, "&lt;!--"...)
				i += len(commentOpen)
				continue
			}
			i = end + len(commentClose)
		case rest[0] == '&':
			size, reference := reference(rest)
			out = append(out, reference...)
			i += size
		case rest[0] == '<' && !startsTag(rest):
			out = append(out, "&lt;"...)
			i++
		case hasPrefix(rest, cdataClose):
			out = append(out, "]]&gt;"...)
			i += len(cdataClose)
		default:
			out = append(out, rest[0])
			i++
		}
	}
	return out
}

// finder finds the next mark at or behind a position that only grows. It looks at each byte once, so that a document of nothing
// but beginnings costs no more than any other.
type finder struct {
	text, mark []byte
	at         int
	searched   bool
}

// from returns the position of the next mark, or one beyond the text when there is none.
func (f *finder) from(i int) int {
	if f.searched && f.at >= i {
		return f.at
	}
	f.searched = true
	f.at = len(f.text) + 1
	if i <= len(f.text) {
		if n := bytes.Index(f.text[i:], f.mark); n >= 0 {
			f.at = i + n
		}
	}
	return f.at
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// cdata returns how much of text the section takes and what to write for it; end is where its end mark stands. A section that
// runs over the end of its item into the next section has lost its own end; it gets one.
func cdata(text []byte, end int) (size int, section []byte) {
	body := text[len(cdataOpen):]
	next := bytes.Index(body, []byte(cdataOpen))
	missing := end > len(text)
	if missing || next >= 0 && len(cdataOpen)+next < end {
		reach := body
		if next >= 0 {
			reach = body[:next]
		}
		for _, tag := range []string{"</item>", "</entry>"} {
			if at := bytes.Index(reach, []byte(tag)); at >= 0 {
				cut := bytes.LastIndex(reach[:at], []byte("</")) // the end tag of the element that holds the section
				if cut < 0 {
					cut = at
				}
				section = append(append([]byte(cdataOpen), body[:cut]...), cdataClose...)
				return len(cdataOpen) + cut, section
			}
		}
	}
	if missing {
		return len(cdataOpen), []byte("&lt;![CDATA[")
	}
	size = end + len(cdataClose)
	return size, text[:size]
}

// startsTag is true for a less-than sign that can begin mark-up.
func startsTag(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	switch c := text[1]; c {
	case '!', '?', ':':
		return true
	case '/':
		return len(text) > 2 && nameStart(text[2])
	default:
		return nameStart(c)
	}
}

func nameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

// reference reads what begins with an ampersand.
func reference(text []byte) (size int, out []byte) {
	const longest = 34 // "&CounterClockwiseContourIntegral;" and a bit
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return 1, []byte("&amp;")
	}
	name := string(text[1:end])
	if name[0] == '#' {
		code, ok := number(name[1:])
		switch {
		case !ok:
			return 1, []byte("&amp;")
		case code < 0 || !allowed(code):
			return end + 1, nil
		}
		return end + 1, text[:end+1]
	}
	switch name {
	case "amp", "lt", "gt", "quot", "apos":
		return end + 1, text[:end+1]
	}
	full := "&" + name + ";"
	plain := html.UnescapeString(full)
	if plain == full || bytes.HasSuffix([]byte(plain), []byte(";")) && plain != ";" {
		return 1, []byte("&amp;") // unknown, or known only by its beginning
	}
	return end + 1, []byte(html.EscapeString(plain))
}

// number reads the digits of a character reference; -1 is a number beyond all characters.
func number(digits string) (rune, bool) {
	base := 10
	if len(digits) > 1 && (digits[0] == 'x' || digits[0] == 'X') {
		base, digits = 16, digits[1:]
	}
	n, err := strconv.ParseUint(digits, base, 32)
	switch {
	case err != nil && len(digits) > 0 && err.(*strconv.NumError).Err == strconv.ErrRange: //nolint:errorlint,forcetypeassert // ParseUint promises it
		return -1, true
	case err != nil:
		return 0, false
	case n > utf8.MaxRune:
		return -1, true
	}
	return rune(n), true
}
