// Package feedread makes a feed.Document of the bytes of a feed.
//
// It owns the layer around gofeed: charset, characters and references that XML does not know, junk before the first tag,
// documents that are no feed at all, and the promise that no input silently loses entries. When gofeed fails or gives fewer
// items than the document has item tags, the document is read item by item and what is lost stands in the warnings.
// It does not fetch, store, sanitise HTML or decide which entry is which. Read is a pure function: it starts nothing.
package feedread

import (
	"bytes"
	"errors"
	"fmt"
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
	var (
		parsed   *gofeed.Feed
		warnings []string
		err      error
	)
	if text[0] == '{' || text[0] == '[' {
		parsed, warnings, err = readJSON(dropForbidden(text))
	} else {
		parsed, warnings, err = readXML(text)
	}
	if err != nil {
		return feed.Document{}, err
	}
	doc := convert(parsed, source.URL)
	doc.Warnings = append(append(decoded.Warnings, warnings...), doc.Warnings...)
	return doc, nil
}

// readXML finds the root, cleans what follows, and reads it whole or, failing that, item by item.
func readXML(text []byte) (*gofeed.Feed, []string, error) {
	text = dropForbidden(text)
	at, root, ok := findRoot(text)
	if !ok {
		return nil, nil, notAFeed(text)
	}
	var warnings []string
	if junk := bytes.TrimSpace(text[:at]); len(junk) > 0 && junk[0] != '<' {
		warnings = append(warnings, fmt.Sprintf("skipped %d bytes before the first tag", len(junk)))
	}
	text = escape(text[at:])
	root.open = text[:tagEnd(text)]
	items := findItems(text, root)
	whole, err := parse(text)
	unbalanced := unbalancedItems(text, items)
	switch {
	case err != nil:
		warnings = append(warnings, "the document is broken: "+firstLine(err.Error()))
	case len(whole.Items) < len(items):
		warnings = append(warnings, fmt.Sprintf("the document has %d items, but only %d can be read as it stands", len(items), len(whole.Items)))
	case unbalanced == 0:
		return whole, warnings, nil
	}
	if unbalanced > 0 {
		// An item with a wrong end tag is still counted, but what follows the tag would be missing from it.
		warnings = append(warnings, fmt.Sprintf("%d items have start and end tags that do not match; they were repaired", unbalanced))
	}
	saved, lost := salvage(text, root, items)
	warnings = append(warnings, lost...)
	if whole != nil && len(whole.Items) > len(saved.Items) {
		return whole, warnings, nil
	}
	if len(saved.Items) == 0 && err != nil && len(items) > 0 {
		return nil, nil, fault.New(fault.Unreadable, "the feed is broken and none of its %d items can be read: %s", len(items), firstLine(err.Error()))
	}
	if len(saved.Items) == 0 && err != nil && saved.Title == "" {
		return nil, nil, fault.New(fault.Unreadable, "the feed is broken and holds no items: %s", firstLine(err.Error()))
	}
	return saved, warnings, nil
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
