package sanitise

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// walker keeps of a tree what may stay.
type walker struct {
	// base is what addresses are relative to, or nil.
	base *url.URL
	// scoped is true below an element that has a base of its own.
	scoped bool
}

// children goes over what is in a node. What stands in the place of an element that is unwrapped is looked at in its turn.
func (w *walker) children(parent *html.Node) {
	for n := parent.FirstChild; n != nil; {
		next := n.NextSibling
		switch n.Type {
		case html.TextNode:
			n.Data = strings.ReplaceAll(n.Data, "\x00", "")
		case html.ElementNode:
			switch w.element(n) {
			case keep:
				w.children(n)
			case unwrap:
				if n.FirstChild != nil {
					next = n.FirstChild
				}
				lift(n)
				parent.RemoveChild(n)
			case drop:
				parent.RemoveChild(n)
			}
		default: // comments, doctypes and what else there may be
			parent.RemoveChild(n)
		}
		n = next
	}
}

// lift puts what is in n before n.
func lift(n *html.Node) {
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
}

// element decides about an element and changes its attributes.
func (w *walker) element(n *html.Node) fate {
	if n.Namespace != "" { // SVG and MathML, where the same names mean other things
		return drop
	}
	t := list()
	if block, ok := t.blocks[n.Data]; ok {
		n.Data, n.DataAtom, n.Attr = block.String(), block, nil
	}
	decided := t.fate(n.Data)
	if decided == keep {
		switch n.Data {
		case "a":
			decided = w.link(n)
		case "img":
			decided = w.image(n)
		case "iframe":
			decided = w.frame(n)
		case "audio", "video":
			decided = w.media(n)
		case "source":
			decided = w.source(n)
		case "blockquote", "q", "del", "ins":
			w.resolve(n, "cite", w.webAddress)
		}
	}
	if decided != keep {
		return decided
	}
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		if a.Namespace == "" && !has(kept, a.Key) && t.allows(n.Data, a.Key, a.Val) {
			kept = append(kept, a)
		}
	}
	n.Attr = kept
	return keep
}

// link keeps a link whose address may be followed; of any other the text stays.
func (w *walker) link(n *html.Node) fate {
	w.resolve(n, "href", w.linkAddress)
	if attribute(n, "href") == "" {
		return unwrap
	}
	set(n, "rel", "noopener noreferrer")
	return keep
}

// media keeps a sound or film that has a source, and gives it controls, for a script of its site gave them so far.
func (w *walker) media(n *html.Node) fate {
	if lazy := w.firstOf(n, "data-src"); attribute(n, "src") == "" && lazy != "" {
		set(n, "src", lazy)
	}
	w.resolve(n, "src", w.webAddress)
	w.resolve(n, "poster", w.webAddress)
	if attribute(n, "src") == "" && !contains(n, "source") {
		return drop
	}
	set(n, "controls", "")
	set(n, "preload", "none")
	return keep
}

// source keeps a source that names something, where one may stand.
func (w *walker) source(n *html.Node) fate {
	switch n.Parent.Data {
	case "picture":
		remove(n, "src")
		w.sourceSet(n)
		if attribute(n, "srcset") != "" {
			return keep
		}
	case "audio", "video":
		remove(n, "srcset")
		w.resolve(n, "src", w.webAddress)
		if attribute(n, "src") != "" {
			return keep
		}
	}
	return drop
}

// resolve replaces an address by what clean makes of it, and removes it when that is nothing.
func (w *walker) resolve(n *html.Node, key string, clean func(string) string) {
	value, ok := lookup(n, key)
	if !ok {
		return
	}
	if value = clean(value); value == "" {
		remove(n, key)
		return
	}
	set(n, key, value)
}

func contains(n *html.Node, name string) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.Data == name {
			return true
		}
	}
	return false
}

func has(attributes []html.Attribute, key string) bool {
	for i := range attributes {
		if attributes[i].Key == key {
			return true
		}
	}
	return false
}

func lookup(n *html.Node, key string) (string, bool) {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return n.Attr[i].Val, true
		}
	}
	return "", false
}

func attribute(n *html.Node, key string) string {
	value, _ := lookup(n, key)
	return value
}

func set(n *html.Node, key, value string) {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			n.Attr[i].Val = value
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
}

func remove(n *html.Node, key string) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		if a.Key != key {
			kept = append(kept, a)
		}
	}
	n.Attr = kept
}
