package feedread

import (
	"bytes"
	"regexp"
	"strings"
)

// rootTag is a document's outermost element.
type rootTag struct {
	// name is as written, such as "rdf:RDF"; item is the local name of its items.
	name, item string
	// open is the whole start tag of the cleaned document.
	open []byte
}

// local returns the name without its prefix, in lower case.
func local(name string) string {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	return strings.ToLower(name)
}

var (
	rootPattern = regexp.MustCompile(`(?i)<((?:[a-z][\w.-]*:)?(?:rss|feed|rdf))[\s/>]`)
	htmlPattern = regexp.MustCompile(`(?i)<(?:!doctype\s+html|html|head|body)[\s>]`)
)

// findRoot finds the first tag that opens a feed, behind whatever stands before it. A web page is no feed, even when it
// contains one.
func findRoot(text []byte) (at int, root rootTag, ok bool) {
	visible := blank(text)
	m := rootPattern.FindSubmatchIndex(visible)
	if m == nil {
		return 0, rootTag{}, false
	}
	if page := htmlPattern.FindIndex(visible); page != nil && page[0] < m[0] {
		return 0, rootTag{}, false
	}
	root = rootTag{name: string(text[m[2]:m[3]]), item: "item"}
	if local(root.name) == "feed" {
		root.item = "entry"
	}
	return m[0], root, true
}

// blank returns text with comments and CDATA sections overwritten by spaces, so that what only looks like a tag is not found.
// Sections without an end stay.
func blank(text []byte) []byte {
	out := text
	copied := false
	sections := finder{text: text, mark: []byte(cdataClose)}
	comments := finder{text: text, mark: []byte(commentClose)}
	for i := 0; i < len(text); {
		next := bytes.Index(text[i:], []byte("<!"))
		if next < 0 {
			break
		}
		i += next
		end := 0
		switch rest := text[i:]; {
		case hasPrefix(rest, cdataOpen):
			end = sections.from(i+len(cdataOpen)) + len(cdataClose)
		case hasPrefix(rest, commentOpen):
			end = comments.from(i+len(commentOpen)) + len(commentClose)
		}
		if end == 0 || end > len(text) {
			i += 2
			continue
		}
		if !copied {
			out, copied = bytes.Clone(text), true
		}
		for ; i < end; i++ {
			out[i] = ' '
		}
	}
	return out
}

// longestTag bounds how far the end of a tag is looked for.
const longestTag = 64 << 10

// tagEnd returns the length of the tag that text begins with. Quoted attribute values may hold a greater-than sign; a
// less-than sign outside of them ends a tag that was never closed.
func tagEnd(text []byte) int {
	text = text[:min(len(text), longestTag)]
	var quote byte
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		case c == '<' && i > 0:
			return i
		}
	}
	if i := bytes.IndexByte(text, '>'); i >= 0 { // a quote that is never closed
		return i + 1
	}
	return len(text)
}

// tooDeep is true for a document whose elements nest deeper than any parser should follow.
func tooDeep(text []byte) bool {
	const deepest = 2000
	depth := 0
	for i := 0; i < len(text); {
		next := bytes.IndexByte(text[i:], '<')
		if next < 0 {
			return false
		}
		i += next
		size := tagEnd(text[i:])
		switch tag := text[i : i+size]; {
		case len(tag) < 2 || tag[1] == '!' || tag[1] == '?':
		case tag[1] == '/':
			depth--
		case tag[len(tag)-1] == '>' && tag[len(tag)-2] == '/':
		default:
			depth++
		}
		if depth > deepest {
			return true
		}
		i += size
	}
	return false
}

// span is where one item stands in the text. A closed one ends behind its own end tag.
type span struct {
	from, to int
	closed   bool
}

// findItems returns the items of a cleaned document in order.
func findItems(text []byte, root rootTag) []span {
	visible := blank(text)
	pattern := regexp.MustCompile(`(?i)<(/?)((?:[a-z][\w.-]*:)?` + root.item + `)[\s/>]`)
	prefix, _, prefixed := strings.Cut(root.name, ":")
	var spans []span
	open := false
	for _, m := range pattern.FindAllSubmatchIndex(visible, -1) {
		if m[0] < len(root.open) {
			continue // inside the root's own tag
		}
		name := string(visible[m[4]:m[5]])
		if p, _, ok := strings.Cut(name, ":"); ok && (!prefixed || p != prefix) && p != "rss" && p != "atom" {
			continue // an item of another vocabulary
		}
		end := m[0] + tagEnd(visible[m[0]:])
		switch closing := m[3] > m[2]; {
		case closing && open:
			spans[len(spans)-1].to, spans[len(spans)-1].closed, open = end, true, false
		case !closing:
			if open {
				spans[len(spans)-1].to = m[0]
			}
			selfClosed := end >= 2 && visible[end-2] == '/'
			spans = append(spans, span{from: m[0], to: end, closed: selfClosed})
			open = !selfClosed
		}
	}
	if open {
		spans[len(spans)-1].to = len(text)
	}
	return spans
}
