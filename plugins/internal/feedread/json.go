package feedread

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mmcdole/gofeed"

	"github.com/drover-jobs/drover/protocol/fault"
)

// readJSON reads a JSON Feed, item by item when it does not read as a whole.
func readJSON(text []byte) (*gofeed.Feed, []string, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(text, &outer); err != nil {
		if text[0] == '[' {
			return nil, nil, fault.New(fault.WrongContent, "the answer is a JSON list, not a feed")
		}
		return nil, nil, fault.New(fault.Unreadable, "the answer looks like JSON, but does not read: %s", firstLine(err.Error()))
	}
	var items []json.RawMessage
	itemsErr := json.Unmarshal(outer["items"], &items)
	if !strings.Contains(string(outer["version"]), "jsonfeed.org") && itemsErr != nil {
		return nil, nil, fault.New(fault.WrongContent, "the answer is a JSON document, but not a JSON Feed")
	}
	whole, err := parse(text)
	if err == nil && len(whole.Items) >= len(items) {
		return whole, nil, nil
	}
	var warnings []string
	if err != nil {
		warnings = append(warnings, "the document is broken: "+firstLine(err.Error()))
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
	}
	if len(items) > 0 && len(saved.Items) == 0 {
		return nil, nil, fault.New(fault.Unreadable, "the feed is broken and none of its %d items can be read", len(items))
	}
	return saved, append(warnings, shorten(lost, beyond)...), nil
}

func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil { // the parts have been decoded before
		return []byte("{}")
	}
	return out
}
