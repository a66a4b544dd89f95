package feedread

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mmcdole/gofeed"

	"github.com/drover-jobs/drover/protocol/fault"
)

// readJSON reads a JSON Feed, item by item when it does not read as a whole.
func readJSON(text []byte) (*reading, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(text, &outer); err != nil {
		if text[0] == '[' {
			return nil, fault.New(fault.WrongContent, "the answer is a JSON list, not a feed")
		}
		return nil, fault.New(fault.Unreadable, "the answer looks like JSON, but does not read: %s", firstLine(err.Error()))
	}
	var items []json.RawMessage
	itemsErr := json.Unmarshal(outer["items"], &items)
	if !strings.Contains(string(outer["version"]), "jsonfeed.org") && itemsErr != nil {
		return nil, fault.New(fault.WrongContent, "the answer is a JSON document, but not a JSON Feed")
	}
	whole, err := parse(text)
	if err == nil && len(whole.Items) >= len(items) {
		places := make([]place, len(items))
		for i := range items {
			places[i] = jsonPlace(items[i])
		}
		r := &reading{places: make(map[*gofeed.Item]place)}
		r.takeWhole(whole, places)
		return r, nil
	}
	r := &reading{places: make(map[*gofeed.Item]place)}
	if err != nil {
		r.warnings = append(r.warnings, "the document is broken: "+firstLine(err.Error()))
	}
	saved := &gofeed.Feed{FeedType: "json"}
	head := make(map[string]json.RawMessage, len(outer))
	for _, key := range []string{"version", "title", "home_page_url", "description", "icon", "language"} {
		if value, ok := outer[key]; ok && json.Unmarshal(value, new(string)) == nil {
			head[key] = value
		}
	}
	if small, err := parse(encode(head)); err == nil {
		saved = small
	}
	saved.Items = nil
	var lost []string
	beyond := max(len(items)-MaxEntries, 0)
	for i, item := range items[:len(items)-beyond] {
		small, err := parse(encode(map[string]any{"version": head["version"], "items": []json.RawMessage{item}}))
		if err != nil || len(small.Items) == 0 {
			lost = append(lost, fmt.Sprintf("item %d is lost: it cannot be read", i+1))
			continue
		}
		saved.Items = append(saved.Items, small.Items[0])
		r.places[small.Items[0]] = jsonPlace(item)
	}
	if len(items) > 0 && len(saved.Items) == 0 {
		return nil, fault.New(fault.Unreadable, "the feed is broken and none of its %d items can be read", len(items))
	}
	r.feed, r.lost = saved, len(lost)+beyond
	r.warnings = append(r.warnings, shorten(lost, beyond)...)
	return r, nil
}

// jsonPlace says which of an item's words are text. A summary always is (JSON Feed 1.1, "Items").
func jsonPlace(item json.RawMessage) place {
	p := place{typed: true, summaryType: "text", contentType: "html"}
	var content struct {
		HTML string `json:"content_html"`
	}
	if err := json.Unmarshal(item, &content); err != nil || content.HTML == "" {
		p.contentType = "text"
	}
	return p
}

func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil { // the parts have been decoded before
		return []byte("{}")
	}
	return out
}
