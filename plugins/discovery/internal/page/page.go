// Package page finds in a web page what may lead to its feeds.
//
// It owns the reading of HTML as the real web writes it: link elements and Link headers with whatever rel and type, anchors that
// look like feeds, meta refresh, base, unknown charsets, shells that JavaScript fills. It only collects and resolves: whether
// something is a feed is known when it has been fetched, which is the worker's part. Read is a pure function; the package uses
// the tokenizer of x/net/html and no tree, so that its work grows with the length of the page and with nothing else.
package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/charset"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
)

// How many links of each kind are kept, in the order of the page.
const (
	maxDeclared = 60
	maxAnchors  = 40
	maxPages    = 20
	maxMentions = 20
)

// Link is an address in a page.
type Link struct {
	URL *url.URL
	// Title is what the page calls it; may be empty.
	Title string
	// Sure is true when its type or its name says that it is a feed, and not only its text.
	Sure bool
}

// Page is what was found. Every address is absolute.
type Page struct {
	// URL is where the page was.
	URL         *url.URL
	Title       string
	Description string
	// Generator is what the page says that it was made with, in lower case.
	Generator string
	// Icon and Manifest are addresses, or "".
	Icon, Manifest string
	// Refresh is where the page sends its reader by itself; nil when it does not.
	Refresh *url.URL
	// Declared are the feeds that headers and link elements name, Anchors the links that look like feeds, Pages those to pages
	// of the same site that may know more, Mentions what scripts have written in them.
	Declared, Anchors, Pages, Mentions []Link
	// Shell is true for a page that has nothing in it until its scripts have run.
	Shell bool
}

// Read reads a page. at is the address that answered, header what came with it; body may be anything.
func Read(body []byte, at *url.URL, header http.Header) *Page {
	p := &Page{URL: at}
	for _, l := range parseLinks(header.Values("Link")) {
		if kind := declares(l.rel, l.mediaType, l.target); kind != no {
			// RFC 8288: the base of a header is the page, whatever its base element says.
			p.Declared = add(p.Declared, at, l.target, l.title, kind == sure, maxDeclared)
		}
	}
	decoded := charset.Decode(body, header.Get("Content-Type"))
	r := &reader{page: p, base: at}
	r.read(decoded.Text, false)
	r.finish()
	return p
}

// add appends what ref leads to unless the list is full or has it already.
func add(list []Link, base *url.URL, ref, title string, sure bool, most int) []Link {
	u, ok := address.Resolve(base, ref)
	if !ok || len(list) >= most {
		return list
	}
	spelt := u.String()
	for i := range list {
		if list[i].URL.String() == spelt {
			if list[i].Title == "" {
				list[i].Title = title
			}
			list[i].Sure = list[i].Sure || sure
			return list
		}
	}
	return append(list, Link{URL: u, Title: oneLine(title), Sure: sure})
}

// oneLine makes a title of what stands in a page.
func oneLine(text string) string {
	const longest = 300
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest])
	}
	return text
}
