package feedread

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// convert translates gofeed's words into ours.
func convert(in *gofeed.Feed, address string) feed.Document {
	base, err := url.Parse(address)
	if err != nil {
		base = &url.URL{}
	}
	doc := feed.Document{
		Type:        strings.TrimSpace(in.FeedType + " " + in.FeedVersion),
		Title:       oneLine(in.Title),
		Description: strings.TrimSpace(in.Description),
		SiteURL:     resolve(base, in.Link),
		Language:    strings.TrimSpace(in.Language),
	}
	if in.Image != nil {
		doc.IconURL = resolve(base, in.Image.URL)
	}
	// A site's own address is a better base for its entries than the place where the feed happens to be kept.
	entryBase := base
	if site, err := url.Parse(doc.SiteURL); err == nil && site.IsAbs() && site.Host != "" {
		entryBase = site
	}
	empty := 0
	for _, item := range in.Items {
		if len(doc.Entries) == MaxEntries {
			doc.Warnings = append(doc.Warnings, fmt.Sprintf("only the first %d of %d items were kept", MaxEntries, len(in.Items)))
			break
		}
		entry := convertItem(item, entryBase)
		if entry.GUID == "" && entry.URL == "" && entry.Title == "" && entry.Content == "" && entry.Summary == "" && len(entry.Enclosures) == 0 {
			empty++
			continue
		}
		doc.Entries = append(doc.Entries, entry)
	}
	if empty > 0 {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("%d items are empty and were left out", empty))
	}
	return doc
}

func convertItem(in *gofeed.Item, base *url.URL) feed.Entry {
	out := feed.Entry{
		GUID:       strings.TrimSpace(in.GUID),
		URL:        resolve(base, in.Link),
		Title:      oneLine(in.Title),
		Summary:    strings.TrimSpace(in.Description),
		Content:    strings.TrimSpace(in.Content),
		Published:  dateOf(in.PublishedParsed, in.Published),
		Updated:    dateOf(in.UpdatedParsed, in.Updated),
		Categories: in.Categories,
	}
	if out.URL == "" && (strings.HasPrefix(out.GUID, "http://") || strings.HasPrefix(out.GUID, "https://")) {
		out.URL = out.GUID
	}
	if out.Published.IsZero() {
		out.Published = out.Updated
	}
	for _, author := range in.Authors {
		if author != nil && out.Author == "" {
			out.Author = oneLine(author.Name)
			if out.Author == "" {
				out.Author = oneLine(author.Email)
			}
		}
	}
	for _, enclosure := range in.Enclosures {
		if enclosure != nil && strings.TrimSpace(enclosure.URL) != "" {
			out.Enclosures = append(out.Enclosures, feed.Enclosure{URL: resolve(base, enclosure.URL), Type: enclosure.Type, Length: enclosure.Length})
		}
	}
	if len(in.Extensions) > 0 {
		if extensions, err := json.Marshal(in.Extensions); err == nil {
			out.Extensions = extensions
		}
	}
	return out
}

func dateOf(parsed *time.Time, text string) time.Time {
	if parsed != nil && plausible(*parsed) {
		return parsed.UTC()
	}
	if t, ok := ParseDate(text); ok {
		return t
	}
	return time.Time{}
}

// oneLine makes a title of what stands in a title element.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// resolve makes an address absolute; what cannot be read stays as it is.
func resolve(base *url.URL, ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" {
		return ""
	}
	u, err := base.Parse(ref)
	if err != nil {
		return ref
	}
	return u.String()
}
