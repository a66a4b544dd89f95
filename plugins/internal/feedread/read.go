// Package feedread makes a feed.Document of the bytes of a feed.
//
// It owns the layer around gofeed: charset, characters and references that XML does not know, junk before the first tag,
// documents that are no feed at all, and the promise that no input silently loses entries. When gofeed fails or gives fewer
// items than the document has item tags, the document is read item by item and what is lost is counted and stands in the warnings.
// The HTML of a document leaves it sanitised, with addresses made absolute; titles and names are text.
// It does not fetch, store or decide which entry is which. Read is a pure function: it starts nothing.
package feedread

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mmcdole/gofeed"

	"github.com/drover-jobs/drover/plugins/internal/charset"
	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/protocol/fault"
)

// MaxEntries is how many entries of one document are kept.
const MaxEntries = 10_000

// Source says where a body came from.
type Source struct {
	// URL is the address that answered; relative links are resolved against it.
	URL string
	// ContentType is the HTTP header as it came. Its media type is ignored, its charset is one voice of several.
	ContentType string
}

// Read reads RSS, RDF, Atom or JSON Feed. The error is a *fault.Fault: WrongContent for what is no feed, Unreadable for a feed
// of which nothing could be saved.
func Read(body []byte, source Source) (feed.Document, error) {
	decoded := charset.Decode(body, source.ContentType)
	text := bytes.TrimSpace(decoded.Text)
	if len(text) == 0 {
		return feed.Document{}, fault.New(fault.Unreadable, "the answer is empty")
	}
	base, err := url.Parse(source.URL)
	if err != nil || !base.IsAbs() {
		base = &url.URL{}
	}
	var r *reading
	if text[0] == '{' || text[0] == '[' {
		r, err = readJSON(dropForbidden(text))
	} else {
		r, err = readXML(text, base)
	}
	if err != nil {
		return feed.Document{}, err
	}
	doc := r.convert(base)
	doc.Warnings = append(decoded.Warnings, doc.Warnings...)
	return doc, nil
}

// reading is what came of a document.
type reading struct {
	feed *gofeed.Feed
	// places says of items where they stood; an item that is missing in it stood at no particular place.
	places   map[*gofeed.Item]place
	warnings []string
	// lost is how many items could not be read; the warnings say which.
	lost int
}

// readXML finds the root, cleans what follows, and reads it whole or, failing that, item by item.
func readXML(text []byte, base *url.URL) (*reading, error) {
	text = dropForbidden(text)
	begin, root, ok := findRoot(text)
	if !ok {
		return nil, notAFeed(text)
	}
	r := &reading{places: make(map[*gofeed.Item]place)}
	if junk := bytes.TrimSpace(text[:begin]); len(junk) > 0 && junk[0] != '<' {
		r.warnings = append(r.warnings, fmt.Sprintf("skipped %d bytes before the first tag", len(junk)))
	}
	text = escape(text[begin:])
	root.open = text[:tagEnd(text)]
	items := findItems(text, root)
	text, places := findPlaces(text, root, items, base)
	root.open = text[:len(root.open)]
	whole, err := parse(text)
	unbalanced := unbalancedItems(text, items)
	switch {
	case err != nil:
		r.warnings = append(r.warnings, "the document is broken: "+firstLine(err.Error()))
	case len(whole.Items) < len(items):
		r.warnings = append(r.warnings, fmt.Sprintf("the document has %d items, but only %d can be read as it stands", len(items), len(whole.Items)))
	case unbalanced == 0:
		r.takeWhole(whole, places)
		return r, nil
	}
	if unbalanced > 0 {
		// An item with a wrong end tag is still counted, but what follows the tag would be missing from it.
		r.warnings = append(r.warnings, fmt.Sprintf("%d items have start and end tags that do not match; they were repaired", unbalanced))
	}
	said := r.warnings
	r.salvage(text, root, items, places)
	if whole != nil && len(whole.Items) > len(r.feed.Items) {
		r.warnings = said
		if r.lost = max(len(items)-len(whole.Items), 0); r.lost > 0 {
			r.warnings = append(r.warnings, fmt.Sprintf("%d items are lost", r.lost))
		}
		r.takeWhole(whole, places)
		return r, nil
	}
	if len(r.feed.Items) == 0 && err != nil && len(items) > 0 {
		return nil, fault.New(fault.Unreadable, "the feed is broken and none of its %d items can be read: %s", len(items), firstLine(err.Error()))
	}
	if len(r.feed.Items) == 0 && err != nil && r.feed.Title == "" {
		return nil, fault.New(fault.Unreadable, "the feed is broken and holds no items: %s", firstLine(err.Error()))
	}
	return r, nil
}

// takeWhole takes a document that was read in one piece. Where its items stood is known when there are as many as were found.
func (r *reading) takeWhole(whole *gofeed.Feed, places []place) {
	r.feed = whole
	if len(whole.Items) != len(places) {
		return
	}
	for i, item := range whole.Items {
		r.places[item] = places[i]
	}
}

// parse calls gofeed and survives it.
func parse(text []byte) (out *gofeed.Feed, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the parser stumbled: %v", p)
		}
	}()
	if tooDeep(blank(text)) {
		return nil, errors.New("its elements are nested too deeply")
	}
	out, err = gofeed.NewParser().Parse(bytes.NewReader(text))
	if err == nil && out == nil {
		err = gofeed.ErrFeedTypeNotDetected
	}
	return out, err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 200)]
}
