// Package icon finds the picture by which people recognise a feed.
//
// It owns where icons are looked for and in which order, what counts as one, and what type its bytes have. It does not own
// fetching (every address, also of what a page or a manifest names, goes through the guarded client that it is given), nor how
// long an icon is kept (feed.Icon.After) or where. Find starts nothing and gives up with its context.
package icon

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
)

// The ranks of the places, best first.
const (
	RankFeed     = iota + 1 // the feed names it
	RankPage                // a link element of the site's page
	RankManifest            // the site's manifest.json or browserconfig.xml
	RankRoot                // /favicon.ico of the site's host, or of the feed's when it names no site
)

// Limits of one look.
const (
	// MaxBytes is the size of an icon and of a page that names some.
	MaxBytes  = 2 << 20
	perPlace  = 4 // addresses that are tried of each place
	smallest  = 8 // pixels; less is a tracker or nothing
	squareLow = 0.8
)

// Getter is the part of the guarded client that is needed.
type Getter interface {
	Get(ctx context.Context, req fetch.Request) (*fetch.Response, error)
}

// Find looks for the icon of a feed. Its Data is empty when there is none.
func Find(ctx context.Context, client Getter, f *feed.Feed) feed.Icon {
	s := search{client: client, tried: make(map[string]bool)}
	if found := s.try(ctx, RankFeed, f.IconURL); len(found.Data) > 0 {
		return found
	}
	site := f.SiteURL
	if site == "" {
		site = root(f.URL, "/")
	}
	links, manifests := s.page(ctx, site)
	if found := s.try(ctx, RankPage, links...); len(found.Data) > 0 {
		return found
	}
	for _, address := range manifests {
		if found := s.try(ctx, RankManifest, s.manifest(ctx, address)...); len(found.Data) > 0 {
			return found
		}
	}
	return s.try(ctx, RankRoot, root(site, "/favicon.ico"))
}

// root returns another path on the host of an address.
func root(address, path string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String()
}

// search is one look.
type search struct {
	client Getter
	tried  map[string]bool
}

// try returns the first of the addresses that is an icon.
func (s *search) try(ctx context.Context, rank int, addresses ...string) feed.Icon {
	for _, address := range addresses[:min(len(addresses), perPlace)] {
		if address == "" || s.tried[address] || ctx.Err() != nil {
			continue
		}
		s.tried[address] = true
		data := inPlace(address)
		if data == nil {
			data = s.get(ctx, address, "image/*,*/*;q=0.5")
		}
		picture, ok := Inspect(data)
		if !ok || rank == RankFeed && !picture.square() {
			continue // the image of an RSS feed is a banner as often as not
		}
		return feed.Icon{URL: address, Type: picture.Type, Data: picture.Data, Width: picture.Width, Height: picture.Height, Rank: rank}
	}
	return feed.Icon{}
}

// get fetches a body, nil when there is none.
func (s *search) get(ctx context.Context, address, accept string) []byte {
	response, err := s.client.Get(ctx, fetch.Request{URL: address, Accept: accept})
	if err != nil || response.Status != 200 || response.Damaged {
		return nil
	}
	return response.Body
}

// inPlace decodes a data: address, nil for any other.
func inPlace(address string) []byte {
	rest, ok := cutPrefixFold(address, "data:")
	if !ok {
		return nil
	}
	head, body, _ := strings.Cut(rest, ",")
	text, err := url.PathUnescape(body)
	if err != nil {
		text = body
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64") {
		return decodeBase64(text)
	}
	return []byte(text)
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// page returns what the page of the site names: icons, the most suitable first, and manifests.
func (s *search) page(ctx context.Context, address string) (icons, manifests []string) {
	if address == "" {
		return nil, nil
	}
	response, err := s.client.Get(ctx, fetch.Request{URL: address, Accept: "text/html,*/*;q=0.5"})
	if err != nil || response.Status != 200 || bytes.HasPrefix(response.Body, []byte("\x89PNG")) {
		return nil, nil
	}
	base, err := url.Parse(response.URL)
	if err != nil {
		return nil, nil
	}
	found := links(response.Body, base)
	slices.SortStableFunc(found.icons, func(a, b link) int { return a.order - b.order })
	for _, l := range found.icons {
		icons = append(icons, l.address)
	}
	return icons, found.manifests
}
