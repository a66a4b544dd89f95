package discover

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedread"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/plugins/discovery/internal/channel"
	"github.com/drover-jobs/drover/plugins/discovery/internal/page"
	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

// perTask is how many candidates of a task are verified at once.
const perTask = 6

// candidate is an address that may be a feed.
type candidate struct {
	url    *url.URL
	title  string
	origin rank.Origin
	// position counts the candidates of the same origin before it.
	position int
}

// candidates numbers links of one origin, at most most of them.
func candidates(links []page.Link, origin rank.Origin, most int) []candidate {
	var out []candidate
	for i, l := range links[:min(len(links), most)] {
		out = append(out, candidate{url: l.URL, title: l.Title, origin: origin, position: i})
	}
	return out
}

func guessesOf(guesses []channel.Guess) []candidate {
	var out []candidate
	for i, g := range guesses {
		out = append(out, candidate{url: g.URL, title: g.Title, origin: rank.Channel, position: i})
	}
	return out
}

// verify fetches and reads candidates that have not been asked yet, some at once, and returns when all are done or ctx has
// ended.
func (s *search) verify(ctx context.Context, list []candidate) {
	var wg sync.WaitGroup
	room := make(chan struct{}, perTask)
	for _, c := range list {
		if !s.claim(c.url) {
			continue
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			s.timeUp()
			wg.Wait()
			return
		}
		wg.Go(func() {
			defer func() { <-room }()
			s.verifyOne(ctx, c)
		})
	}
	wg.Wait()
}

func (s *search) verifyOne(ctx context.Context, c candidate) {
	response, err := s.asker.get(ctx, c.url, acceptFeed)
	if err == nil {
		err = faultOf(response)
	}
	if err != nil {
		s.note(ctx, c, err)
		return
	}
	document, err := readFeed(response)
	if err == nil {
		s.found(c, response, &document)
		return
	}
	final, parseErr := url.Parse(response.URL)
	if more := channel.InLookup(c.url, response.Body); len(more) > 0 && parseErr == nil {
		s.record(c, "names a feed")
		s.verify(ctx, guessesOf(more))
		return
	}
	if c.origin != rank.Guessed && c.origin != rank.Channel && parseErr == nil && address.Site(final) == address.Site(s.starts[0]) {
		s.keepPage(page.Read(response.Body, final, response.Header)) // "our feeds" is often a page with the feeds
	}
	s.note(ctx, c, err)
}

// readFeed reads a body as a feed; the error is a *fault.Fault.
func readFeed(r *fetch.Response) (feed.Document, error) {
	return feedread.Read(r.Body, feedread.Source{URL: r.URL, ContentType: r.Header.Get("Content-Type")})
}

// found takes a feed into the list.
func (s *search) found(c candidate, r *fetch.Response, document *feed.Document) {
	u := lasting(c.url, r)
	f := rank.Feed{
		URL: u, Title: cmp.Or(document.Title, c.title), Description: document.Description, Type: document.Type, Icon: document.IconURL,
		SiteURL: document.SiteURL, LastPost: lastPost(document, time.Now()), Entries: entriesOf(document),
		Facts: rank.Facts{Origin: c.origin, Position: c.position, Entries: len(document.Entries), Age: -1},
	}
	if !f.LastPost.IsZero() {
		f.Facts.Age = time.Since(f.LastPost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range append([]*url.URL{s.at}, s.starts...) {
		if at != nil {
			f.Facts.Under = f.Facts.Under || rank.Under(at, u)
			f.Facts.SameSite = f.Facts.SameSite || rank.SameSite(at, u)
		}
	}
	if c.origin != rank.Channel && c.origin != rank.Given { // those are what was asked for
		f.Facts.Role = rank.RoleOf(u, c.title, document.Title)
	}
	s.feeds = append(s.feeds, f)
	s.tried = append(s.tried, Tried{URL: fetch.Redact(c.url.String()), Origin: c.origin.String(), Result: "feed"})
}

// lasting is the address to remember: where permanent redirects lead, else the one that was asked; https when both answer.
func lasting(asked *url.URL, r *fetch.Response) *url.URL {
	final, err := url.Parse(r.URL)
	if err != nil {
		return asked
	}
	if r.Moved() != "" || address.Key(final) == address.Key(asked) && final.Scheme == "https" {
		return final
	}
	return asked
}

// lastPost is the date of the newest entry that does not lie in the future.
func lastPost(d *feed.Document, now time.Time) time.Time {
	var last time.Time
	for i := range d.Entries {
		at := d.Entries[i].Published
		if at.IsZero() {
			at = d.Entries[i].Updated
		}
		if at.After(last) && !at.After(now) {
			last = at
		}
	}
	return last
}

// comparedEntries is how many entries are kept for comparing feeds.
const comparedEntries = 200

// entriesOf returns what tells entries apart, the newest first as far as there are dates.
func entriesOf(d *feed.Document) []rank.Entry {
	var out []rank.Entry
	for i := range d.Entries {
		e := &d.Entries[i]
		entry := rank.Entry{Title: e.Title, Date: e.Published}
		if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
			entry.URL = address.Key(u)
		}
		out = append(out, entry)
	}
	slices.SortStableFunc(out, func(a, b rank.Entry) int { return b.Date.Compare(a.Date) })
	return out[:min(len(out), comparedEntries)]
}

// note records what came of a candidate that is no feed.
func (s *search) note(ctx context.Context, c candidate, err error) {
	if ctx.Err() != nil {
		s.timeUp()
		s.record(c, "the time ran out")
		return
	}
	text := strings.TrimPrefix(fault.From(err).Message, fetch.Redact(c.url.String()))
	s.record(c, clip(strings.TrimLeft(text, ": "), maxTitle))
}

func (s *search) record(c candidate, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, Tried{URL: fetch.Redact(c.url.String()), Origin: c.origin.String(), Result: result})
}
