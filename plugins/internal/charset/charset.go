// Package charset turns bytes of unknown encoding into UTF-8.
//
// It owns the decision which encoding a document from outside is in, and the decoding. It does not own what is in the text:
// control characters and mark-up are the reader's business. It is a pure function of its input and starts nothing.
//
// The order: a byte order mark; the shape of UTF-16; a body that is valid UTF-8 is UTF-8 whatever anybody says; the HTTP
// header; the XML declaration; a meta element; a body that is nearly valid UTF-8; a guess; windows-1252. A label is looked up
// in the table of the WHATWG encoding standard, where iso-8859-1 and us-ascii mean windows-1252.
package charset

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	htmlcharset "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Result is a decoded document.
type Result struct {
	// Text is valid UTF-8 without a byte order mark. Bytes that mean nothing in the encoding have become U+FFFD.
	Text []byte
	// Name is the encoding's name in the WHATWG table, such as "utf-8" or "windows-1251", or "utf-32".
	Name string
	// Warnings say what was wrong with the labels or the bytes.
	Warnings []string
}

const (
	labelWindow = 16 << 10  // how far into a document a declaration or a meta element is looked for
	guessWindow = 128 << 10 // how much of a document a guess looks at
	quiteSurely = 0.8
	surely      = 0.3 // below this confidence a guess is worth less than windows-1252
)

var (
	headerLabel = regexp.MustCompile(`(?i)charset\s*=\s*["']?\s*([^\s"';,]+)`)
	xmlLabel    = regexp.MustCompile(`(?i)<\?xml[^>]{0,200}?encoding\s*=\s*["']\s*([^"'\s>]+)`)
	metaLabel   = regexp.MustCompile(`(?i)<meta[^>]{0,300}?charset\s*=\s*["']?\s*([^\s"'/>;]+)`)
)

// Decode finds the encoding of body and decodes it. contentType is the HTTP header as it came, or "".
func Decode(body []byte, contentType string) Result {
	if r, ok := marked(body); ok {
		return r
	}
	labels := labelsOf(body, contentType)
	if utf8.Valid(body) {
		if l, ok := sevenBit(body, labels); ok {
			return decodeAs(l, body, nil)
		}
		return Result{Text: body, Name: "utf-8"}
	}
	var warnings []string
	for _, l := range labels {
		switch {
		case l.enc == nil:
			warnings = append(warnings, fmt.Sprintf("%s names the unknown charset %q", l.source, l.label))
		case l.name == "utf-8":
			warnings = append(warnings, l.source+" says utf-8, but the text is not")
		case strings.HasPrefix(l.name, "utf-16"):
			// Its shape would have been seen; an XML declaration that could be read byte by byte disproves itself.
			warnings = append(warnings, l.source+" says "+l.name+", but the text is not")
		default:
			return decodeAs(l, body, warnings)
		}
	}
	if bad, ok := nearlyUTF8(body); ok {
		return Result{
			Text: bytes.ToValidUTF8(body, []byte("\uFFFD")), Name: "utf-8",
			Warnings: []string{fmt.Sprintf("%d bytes that are not utf-8 were replaced", bad)},
		}
	}
	return decodeAs(guess(body), body, warnings)
}

// label is one statement about the encoding.
type label struct {
	source, label, name string
	enc                 encoding.Encoding // nil when unknown
}

func newLabel(source, text string) label {
	enc, name := htmlcharset.Lookup(strings.TrimSpace(text))
	return label{source: source, label: text, name: name, enc: enc}
}

func labelsOf(body []byte, contentType string) []label {
	head := body[:min(len(body), labelWindow)]
	var found []label
	if m := headerLabel.FindStringSubmatch(contentType); m != nil {
		found = append(found, newLabel("the HTTP header", m[1]))
	}
	if m := xmlLabel.FindSubmatch(head); m != nil {
		found = append(found, newLabel("the XML declaration", string(m[1])))
	}
	if m := metaLabel.FindSubmatch(head); m != nil {
		found = append(found, newLabel("the meta element", string(m[1])))
	}
	return found
}

// marked deals with byte order marks and with UTF-16 that has none: every XML or JSON document starts with an ASCII character.
func marked(body []byte) (Result, bool) {
	for _, m := range []struct {
		mark []byte
		name string
		skip int
	}{
		{[]byte{0xff, 0xfe, 0, 0}, "utf-32le", 4},
		{[]byte{0, 0, 0xfe, 0xff}, "utf-32be", 4},
		{[]byte{0xef, 0xbb, 0xbf}, "utf-8", 3},
		{[]byte{0xff, 0xfe}, "utf-16le", 2},
		{[]byte{0xfe, 0xff}, "utf-16be", 2},
		{[]byte{'<', 0, '?', 0}, "utf-16le", 0},
		{[]byte{0, '<', 0, '?'}, "utf-16be", 0},
		{[]byte{'<', 0, 'r', 0}, "utf-16le", 0},
		{[]byte{0, '<', 0, 'r'}, "utf-16be", 0},
	} {
		if !bytes.HasPrefix(body, m.mark) {
			continue
		}
		rest := body[m.skip:]
		switch m.name {
		case "utf-8":
			if utf8.Valid(rest) {
				return Result{Text: rest, Name: "utf-8"}, true
			}
			if bad, ok := nearlyUTF8(rest); ok {
				return Result{
					Text: bytes.ToValidUTF8(rest, []byte("\uFFFD")), Name: "utf-8",
					Warnings: []string{fmt.Sprintf("%d bytes that are not utf-8 were replaced", bad)},
				}, true
			}
			return Result{}, false
		case "utf-32le":
			return decodeAs(label{name: "utf-32", enc: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}, rest, nil), true
		case "utf-32be":
			return decodeAs(label{name: "utf-32", enc: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}, rest, nil), true
		}
		return decodeAs(newLabel("the byte order", m.name), rest, nil), true
	}
	return Result{}, false
}

// sevenBit finds a declared encoding whose text is valid UTF-8 byte by byte and yet is not UTF-8.
func sevenBit(body []byte, labels []label) (label, bool) {
	for _, l := range labels {
		if l.name == "iso-2022-jp" && bytes.Contains(body, []byte("\x1b$")) {
			return l, true
		}
	}
	return label{}, false
}

// nearlyUTF8 counts the bytes that break UTF-8 and says whether the characters that are whole outweigh them.
func nearlyUTF8(body []byte) (bad int, ok bool) {
	whole := 0
	for i := 0; i < len(body); {
		if body[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			bad++
		} else {
			whole++
		}
		i += size
	}
	return bad, whole > 2*bad
}

// guess asks the statistics, and answers windows-1252 when they have none.
func guess(body []byte) (l label) {
	fallback := newLabel("the guess", "windows-1252")
	defer func() {
		if recover() != nil { // a detector that stumbles over a document is no reason to lose it
			l = fallback
		}
	}()
	sample := body
	if i := bytes.IndexFunc(body, func(r rune) bool { return r >= utf8.RuneSelf }); i > guessWindow/2 {
		sample = body[i-guessWindow/2:]
	}
	found := chardet.Detect(sample[:min(len(sample), guessWindow)])
	name := strings.ToLower(found.Encoding)
	switch {
	case found.Confidence < surely:
		return fallback
	case name == "maccyrillic" || name == "x-mac-cyrillic":
		name = "windows-1251" // shares its small letters; the web knows no MacCyrillic
	case (name == "iso-8859-9" || name == "windows-1254") && found.Confidence < quiteSurely:
		return fallback // differs from windows-1252 in six letters that only Turkish needs
	}
	if l := newLabel("the guess", name); l.enc != nil && l.name != "utf-8" && !strings.HasPrefix(l.name, "utf-16") {
		return l
	}
	return fallback
}

func decodeAs(l label, body []byte, warnings []string) Result {
	text, err := l.enc.NewDecoder().Bytes(body)
	if err != nil { // decoders replace; this one gave up
		text = bytes.ToValidUTF8(body, []byte("\uFFFD"))
		warnings = append(warnings, fmt.Sprintf("decoding %s: %v", l.name, err))
	}
	text = bytes.TrimPrefix(bytes.ToValidUTF8(text, []byte("\uFFFD")), []byte("\uFEFF"))
	if len(warnings) > 0 {
		warnings = append(warnings, "read as "+l.name)
	}
	return Result{Text: text, Name: l.name, Warnings: warnings}
}
