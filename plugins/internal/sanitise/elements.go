package sanitise

import (
	"net/url"
	"regexp"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html/atom"
)

// fate is what becomes of an element.
type fate int

const (
	unwrap fate = iota // the element goes, what is in it stays: the fate of everything unknown
	keep
	drop // the element goes with all that is in it
)

// tables is the list of what may stay.
type tables struct {
	// attributes holds each element that stays, with the attributes that it may have and what they must look like.
	attributes map[string]map[string]*regexp.Regexp
	global     map[string]*regexp.Regexp
	// dropped holds the elements whose content is nothing to read without them, or is not meant to be read.
	dropped map[string]bool
	// blocks holds elements that are paragraphs of their own, and what they become, lest they run into their neighbours.
	blocks map[string]atom.Atom
}

func (t *tables) fate(name string) fate {
	switch {
	case t.attributes[name] != nil:
		return keep
	case t.dropped[name]:
		return drop
	}
	return unwrap
}

// allows is true when the element may have an attribute of this value.
func (t *tables) allows(element, attribute, value string) bool {
	pattern, ok := t.attributes[element][attribute]
	if !ok {
		pattern, ok = t.global[attribute]
	}
	return ok && pattern.MatchString(value)
}

//nolint:gochecknoglobals // made once, never written
var list = sync.OnceValue(newTables)

func newTables() *tables {
	var (
		anything = regexp.MustCompile(`^[^\x00]*$`)
		digits   = regexp.MustCompile(`^[0-9]{1,5}%?$`)
		number   = regexp.MustCompile(`^-?[0-9]{1,9}$`)
		date     = regexp.MustCompile(`^[0-9A-Za-z:.+ -]{1,64}$`)
		flag     = regexp.MustCompile(`^$`)
		address  = regexp.MustCompile(`^[a-z]+:[^\x00-\x20<>"]+$`)
		web      = regexp.MustCompile(`^https?://[^\x00-\x20<>"]+$`)
		image    = regexp.MustCompile(`^(?:https?://[^\x00-\x20<>"]+|data:image/[a-z]+;base64,[A-Za-z0-9+/]+=*)$`)
		srcset   = regexp.MustCompile(`^https?://[^\x00-\x1f<>"]+$`)
		sizes    = regexp.MustCompile(`^[\w\s.,:()%*/+-]{1,500}$`)
		language = regexp.MustCompile(`^language-[\w.+#-]{1,30}$`)
	)
	type attrs = map[string]*regexp.Regexp
	t := &tables{
		attributes: map[string]attrs{
			"a":          {"href": address, "rel": regexp.MustCompile(`^noopener noreferrer$`)},
			"audio":      {"src": web, "controls": flag, "preload": regexp.MustCompile(`^none$`)},
			"bdo":        {},
			"blockquote": {"cite": web},
			"code":       {"class": language},
			"col":        {"span": digits},
			"colgroup":   {"span": digits},
			"del":        {"cite": web, "datetime": date},
			"details":    {"open": flag},
			"iframe": {
				"src": regexp.MustCompile(`^https://[^\x00-\x20<>"]+$`), "width": digits, "height": digits, "allowfullscreen": flag,
				"sandbox": regexp.MustCompile("^" + sandbox + "$"), "referrerpolicy": regexp.MustCompile("^" + referrer + "$"), "loading": regexp.MustCompile(`^lazy$`),
			},
			"img":    {"src": image, "srcset": srcset, "sizes": sizes, "alt": anything, "width": digits, "height": digits},
			"ins":    {"cite": web, "datetime": date},
			"li":     {"value": number},
			"ol":     {"start": number, "reversed": flag, "type": regexp.MustCompile(`^[1aAiI]$`)},
			"pre":    {"class": language},
			"q":      {"cite": web},
			"source": {"src": web, "srcset": srcset, "sizes": sizes, "media": sizes, "type": regexp.MustCompile(`^(?:audio|video|image)/[\w.+-]+(?:; ?codecs=[\w., '-]+)?$`)},
			"td":     {"colspan": digits, "rowspan": digits, "align": regexp.MustCompile(`^(?:left|right|center)$`)},
			"th":     {"colspan": digits, "rowspan": digits, "align": regexp.MustCompile(`^(?:left|right|center)$`), "scope": regexp.MustCompile(`^(?:row|col)(?:group)?$`)},
			"time":   {"datetime": date},
			"video": {
				"src": web, "poster": web, "width": digits, "height": digits, "controls": flag, "muted": flag, "loop": flag, "preload": regexp.MustCompile(`^none$`),
			},
		},
		global: attrs{
			"title": anything, "dir": regexp.MustCompile(`^(?:ltr|rtl|auto)$`), "lang": regexp.MustCompile(`^[A-Za-z0-9-]{1,35}$`),
		},
		dropped: make(map[string]bool),
		blocks: map[string]atom.Atom{
			"center": atom.Div, "dir": atom.Ul, "fieldset": atom.Div, "form": atom.Div, "legend": atom.Div, "listing": atom.Pre, "marquee": atom.Div,
			"menu": atom.Ul, "nav": atom.Div, "plaintext": atom.Pre, "search": atom.Div, "xmp": atom.Pre,
		},
	}
	for _, name := range []string{
		"abbr", "acronym", "address", "article", "aside", "b", "bdi", "big", "br", "caption", "cite", "dd", "dfn", "div", "dl", "dt", "em",
		"figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "i", "kbd", "main", "mark", "p", "picture",
		"rp", "rt", "ruby", "s", "samp", "section", "small", "span", "strike", "strong", "sub", "summary", "sup", "table", "tbody", "tfoot",
		"thead", "tr", "tt", "u", "ul", "var", "wbr",
	} {
		t.attributes[name] = attrs{}
	}
	for _, name := range []string{
		"applet", "area", "base", "basefont", "bgsound", "button", "canvas", "command", "datalist", "dialog", "embed", "fencedframe", "frame",
		"frameset", "head", "input", "isindex", "keygen", "link", "map", "math", "menuitem", "meta", "meter", "noembed", "noframes", "object", "optgroup",
		"option", "output", "param", "portal", "progress", "script", "select", "slot", "style", "svg", "template", "textarea", "title", "track", "xml",
	} {
		t.dropped[name] = true
	}
	return t
}

// policy is the same list in bluemonday's words.
//
//nolint:gochecknoglobals // made once, never written
var policy = sync.OnceValue(newPolicy)

func newPolicy() *bluemonday.Policy {
	t, p := list(), bluemonday.NewPolicy()
	for name, attributes := range t.attributes {
		p.AllowElements(name)
		p.AllowNoAttrs().OnElements(name)
		for attribute, pattern := range attributes {
			p.AllowAttrs(attribute).Matching(pattern).OnElements(name)
		}
		for attribute, pattern := range t.global {
			p.AllowAttrs(attribute).Matching(pattern).OnElements(name)
		}
	}
	p.RequireParseableURLs(true)
	p.AllowURLSchemes(linkSchemes()...)
	p.AllowURLSchemeWithCustomPolicy("data", func(u *url.URL) bool { return rasterImage("data:"+u.Opaque) != "" })
	return p
}

// inline is true for elements that stand in a line of text, so that no space belongs where one begins or ends.
func inline(name string) bool {
	switch name {
	case "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp",
		"small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr":
		return true
	}
	return false
}
