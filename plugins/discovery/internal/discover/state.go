package discover

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/sdk"

	"github.com/drover-jobs/drover/plugins/discovery/internal/page"
	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

// What the fetches of a search share, and what becomes of it in the end.

// claim is true for the first who wants to ask for an address.
func (s *search) claim(u *url.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := u.String()
	if s.asked[key] {
		return false
	}
	s.asked[key] = true
	return true
}

// enough is true when a feed was found that is likely to be meant.
func (s *search) enough() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.feeds, func(f rank.Feed) bool { return rank.Score(f.Facts) >= rank.Enough })
}

func (s *search) hasFeeds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds) > 0
}

// timeUp remembers that not everything was tried.
func (s *search) timeUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = true
}

// say adds a note for a person, once.
func (s *search) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// keepPage keeps a page that was met for searchPages.
func (s *search) keepPage(p *page.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.more) < maxMorePages {
		s.more = append(s.more, p)
	}
}

func (s *search) takeMore() *page.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.more) == 0 {
		return nil
	}
	p := s.more[0]
	s.more = s.more[1:]
	return p
}

func (s *search) progress(ctx context.Context, note string) {
	s.mu.Lock()
	done := len(s.tried)
	s.mu.Unlock()
	sdk.Progress(ctx, uint64(done), 0, note) //nolint:gosec // a length
}

// result puts everything into its final order. All fetches have ended.
func (s *search) result() *Result {
	// The order in which they were found depends on the network; the result does not.
	slices.SortStableFunc(s.feeds, func(a, b rank.Feed) int {
		return cmp.Or(cmp.Compare(a.Facts.Origin, b.Facts.Origin), cmp.Compare(a.Facts.Position, b.Facts.Position), cmp.Compare(a.URL.String(), b.URL.String()))
	})
	feeds := rank.Unite(s.feeds)
	rank.Sort(feeds)
	out := &Result{Feeds: []Feed{}, Tried: s.tried, Notes: s.notes, From: fromSearch, FoundAt: time.Now().UTC().Truncate(time.Second)}
	icon := ""
	if s.page != nil {
		out.Site, out.Title, icon = s.page.URL.String(), s.page.Title, s.page.Icon
	}
	if out.Site == "" {
		out.Site = root(s.starts[0]).String()
		if len(feeds) > 0 {
			out.Site, out.Title = siteOf(feeds[0].URL, feeds[0].SiteURL), clip(plain(feeds[0].Title), maxTitle)
		}
	}
	out.Site = fetch.Redact(out.Site)
	for i := range feeds[:min(len(feeds), maxFeeds)] {
		out.Feeds = append(out.Feeds, feedOf(&feeds[i], icon))
	}
	if s.partial {
		out.Notes = append(out.Notes, "the time ran out before everything was tried; ask again in a minute")
	}
	if s.pageFault != nil {
		out.Notes = append(out.Notes, "the page itself cannot be read: "+s.pageFault.Error())
	}
	out.Tried = out.Tried[:min(len(out.Tried), maxTried)]
	if out.Tried == nil {
		out.Tried = []Tried{}
	}
	if out.Notes == nil {
		out.Notes = []string{}
	}
	return out
}

// siteOf is the page that a feed says it belongs to, or the first page of its host.
func siteOf(u *url.URL, declared string) string {
	if site, err := url.Parse(declared); err == nil && site.Host != "" && (site.Scheme == "http" || site.Scheme == "https") {
		return declared
	}
	return root(u).String()
}
