package feedread

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// convert translates gofeed's words into ours. base is the address of the document.
func (r *reading) convert(base *url.URL) feed.Document {
	in := r.feed
	doc := feed.Document{
		Type:        strings.TrimSpace(in.FeedType + " " + in.FeedVersion),
		Title:       oneLine(in.Title),
		Description: sanitise.Text(in.Description),
		SiteURL:     resolve(base, in.Link),
		Language:    strings.TrimSpace(in.Language),
		Warnings:    r.warnings,
		Lost:        r.lost,
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
	for i, item := range in.Items {
		if len(doc.Entries) == MaxEntries {
			doc.Lost += len(in.Items) - i
			doc.Warnings = append(doc.Warnings, fmt.Sprintf("only the first %d of %d items were kept", MaxEntries, len(in.Items)))
			break
		}
		entry := convertItem(item, r.places[item], entryBase)
		if entry.GUID == "" && entry.URL == "" && entry.Title == "" && entry.Content == "" && entry.Summary == "" && len(entry.Enclosures) == 0 {
			empty++
			continue
		}
		doc.Entries = append(doc.Entries, entry)
	}
	if empty > 0 {
		doc.Lost += empty
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("%d items are empty and were left out", empty))
	}
	doc.Items = len(in.Items) + r.lost
	return doc
}

func convertItem(in *gofeed.Item, where place, base *url.URL) feed.Entry {
	out := feed.Entry{
		GUID:       strings.TrimSpace(in.GUID),
		URL:        resolve(at(where.link, at(where.item, base)), in.Link),
		Title:      oneLine(in.Title),
		Author:     authors(in.Authors),
		Published:  dateOf(in.PublishedParsed, in.Published),
		Updated:    dateOf(in.UpdatedParsed, in.Updated),
		Categories: in.Categories,
	}
	if strings.Contains(where.titleType, "html") {
		out.Title = sanitise.Text(in.Title)
	}
	if out.URL == "" && (strings.HasPrefix(out.GUID, "http://") || strings.HasPrefix(out.GUID, "https://")) {
		out.URL = resolve(base, out.GUID)
	}
	if out.Published.IsZero() {
		out.Published = out.Updated
	}
	for _, enclosure := range in.Enclosures {
		if enclosure == nil {
			continue
		}
		if address := resolve(at(where.item, base), enclosure.URL); address != "" {
			out.Enclosures = append(out.Enclosures, feed.Enclosure{URL: address, Type: enclosure.Type, Length: enclosure.Length})
		}
	}
	if len(in.Extensions) > 0 {
		if extensions, err := json.Marshal(in.Extensions); err == nil {
			out.Extensions = extensions
		}
	}
	// Images of an entry are relative to the entry, where nothing else is said.
	htmlBase := base
	if u, err := url.Parse(out.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		htmlBase = u
	}
	out.Summary = sanitise.HTML(where.markup(strings.TrimSpace(in.Description), where.summaryType), at(where.summary, htmlBase))
	out.Content = sanitise.HTML(where.markup(strings.TrimSpace(in.Content), where.contentType), at(where.content, htmlBase))
	return out
}

// authors names all authors of an entry.
func authors(people []*gofeed.Person) string {
	var names []string
	for _, person := range people {
		if person == nil {
			continue
		}
		name := oneLine(person.Name)
		if name == "" {
			name = oneLine(person.Email)
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
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

// resolve makes an address absolute. One of a scheme that nobody should follow becomes "".
func resolve(base *url.URL, ref string) string {
	return sanitise.Address(ref, base, sanitise.EntrySchemes()...)
}
