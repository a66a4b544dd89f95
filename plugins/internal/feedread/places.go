package feedread

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// place is what the mark-up around the parts of one item says about them, which gofeed does not pass on: the address that each
// is relative to (xml:base, on any element from the root down; RFC 3986 and "XML Base"), and whether it is text or HTML.
type place struct {
	item, content, summary, link *url.URL
	// typed is true for an item whose parts have Atom's types: "text", "html", "xhtml", or "" when nothing is said.
	typed                               bool
	contentType, summaryType, titleType string
}

// at returns the nearest base that was named, or else fallback.
func at(named, fallback *url.URL) *url.URL {
	if named != nil {
		return named
	}
	return fallback
}

var (
	baseAttribute = regexp.MustCompile(`(?i)(\sxml:bas)(e)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	typeAttribute = regexp.MustCompile(`(?i)\stype\s*=\s*["']?\s*([\w/+.-]+)`)
)

// scope is an open element and the base that holds in it; nil when none was named.
type scope struct {
	name string
	base *url.URL
}

// placer walks over the tags of a document.
type placer struct {
	address *url.URL
	root    rootTag
	items   []span
	places  []place
	open    []scope
	// inside is the number of open elements outside of the item that is being walked through, 0 outside of items.
	inside, current int
}

// findPlaces walks over the tags of a cleaned document. It also hides the xml:base attributes that it has understood from gofeed,
// which reads them differently from RFC 3986. The text that it returns has the same length.
func findPlaces(text []byte, root rootTag, items []span, address *url.URL) ([]byte, []place) {
	p := placer{address: address, root: root, items: items, places: make([]place, len(items)), current: -1}
	if root.item != "entry" && !bytes.Contains(bytes.ToLower(text), []byte("xml:base")) {
		return text, p.places // RSS has no types
	}
	text = bytes.Clone(text)
	visible := blank(text)
	for i := 0; i < len(text); {
		next := bytes.IndexByte(visible[i:], '<')
		if next < 0 {
			break
		}
		i += next
		size := tagEnd(visible[i:])
		p.tag(text[i:i+size], i)
		i += size
	}
	return text, p.places
}

// tag takes notice of one tag that begins at a position of the text.
func (p *placer) tag(tag []byte, position int) {
	name := tagName(tag)
	switch {
	case name == "":
		return
	case tag[1] == '/':
		for depth := len(p.open) - 1; depth >= 0; depth-- {
			if p.open[depth].name == name {
				p.open = p.open[:depth]
				break
			}
		}
		return
	}
	if next := p.current + 1; next < len(p.items) && position >= p.items[next].from {
		p.current, p.inside = next, len(p.open)+1
	} else if p.current >= 0 && position >= p.items[p.current].to {
		p.inside = 0
	}
	var base *url.URL
	if len(p.open) > 0 {
		base = p.open[len(p.open)-1].base
	}
	depth := len(p.open) + 1 - p.inside // 0 for the item itself
	// In XHTML the one div around everything goes, and would take its base along (RFC 4287, 3.1.1.3).
	wrapping := p.inside > 0 && depth == 2 && local(name) == "div"
	if p.inside == 0 || depth <= 1 || wrapping {
		base = p.rebase(tag, base)
	}
	if p.inside > 0 {
		p.note(name, tag, base, depth)
	}
	const deepest = 2000
	if len(tag) >= 2 && tag[len(tag)-2] != '/' && len(p.open) < deepest {
		p.open = append(p.open, scope{name, base})
	}
}

// rebase reads and hides the base that a tag names.
func (p *placer) rebase(tag []byte, outer *url.URL) *url.URL {
	m := baseAttribute.FindSubmatchIndex(tag)
	if m == nil {
		return outer
	}
	value := ""
	for _, i := range []int{6, 8} {
		if m[i] >= 0 {
			value = string(tag[m[i]:m[i+1]])
		}
	}
	tag[m[4]] = '_'
	u, err := url.Parse(sanitise.Address(sanitise.Text(value), at(outer, p.address), "http", "https"))
	if err != nil || u.Host == "" {
		return outer
	}
	return u
}

// note writes down what a tag of an item says.
func (p *placer) note(name string, tag []byte, base *url.URL, depth int) {
	to := &p.places[p.current]
	if depth == 0 {
		to.item, to.content, to.summary, to.link, to.typed = base, base, base, base, p.root.item == "entry"
		return
	}
	prefix, _, _ := strings.Cut(p.root.name, ":")
	own, _, prefixed := strings.Cut(strings.ToLower(name), ":")
	if depth == 2 && local(name) == "div" {
		switch parent := local(p.open[len(p.open)-1].name); {
		case parent == "content" && to.contentType == "xhtml":
			to.content = base
		case parent == "summary" && to.summaryType == "xhtml":
			to.summary = base
		}
		return
	}
	if depth > 1 || prefixed && own != strings.ToLower(prefix) && own != "atom" && own != "content" {
		return
	}
	kind := ""
	if m := typeAttribute.FindSubmatch(tag); m != nil {
		kind = strings.ToLower(string(m[1]))
	}
	switch local(name) {
	case "content", "encoded":
		to.content, to.contentType = base, kind
	case "summary", "description":
		to.summary, to.summaryType = base, kind
	case "title":
		to.titleType = kind
	case "link":
		if !bytes.Contains(tag, []byte("rel=")) || bytes.Contains(tag, []byte("alternate")) {
			to.link = base
		}
	}
}

var looksLikeHTML = regexp.MustCompile(`(?i)</?(?:p|div|br|a|img|ul|ol|li|b|i|em|strong|span|blockquote|pre|code|h[1-6]|table|iframe|figure)(?:\s[^<>]*)?/?>`)

// markup returns the HTML of an Atom text construct (RFC 4287, 3.1), before it is sanitised. Text is shown as it is; where nothing
// is said it should be text too, but those who forget the type write HTML.
func (p *place) markup(text, kind string) string {
	if !p.typed {
		return text
	}
	if kind == "text" || kind == "text/plain" || kind == "" && !looksLikeHTML.MatchString(text) {
		return sanitise.FromText(text)
	}
	return text
}
