package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/plugins/discovery/internal/channel"
	"github.com/drover-jobs/drover/plugins/discovery/internal/page"
	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

const (
	maxRefreshes  = 3
	maxUnsure     = 10 // anchors that only their text makes likely
	maxMorePages  = 4
	maxPerPage    = 12 // candidates of each of them
	maxFirstLook  = 30 // feeds that a page declares
	pageGrace     = 2 * time.Second
	manifestBytes = 256 << 10
)

// search is one task. Its steps run one after the other, each with several fetches at once; what these share is under mu.
type search struct {
	asker  *asker
	starts []*url.URL
	// page is what was looked at, pageFault why it was no good page; set by open.
	page      *page.Page
	pageFault error
	// hints are the feeds that a rule found in the page.
	hints []channel.Guess

	mu      sync.Mutex
	at      *url.URL // where the page really is
	asked   map[string]bool
	feeds   []rank.Feed
	tried   []Tried
	notes   []string
	more    []*page.Page // pages that were met while candidates were verified
	partial bool
}

func newSearch(client *fetch.Client, gate chan struct{}, starts []*url.URL) *search {
	return &search{asker: newAsker(client, gate), starts: starts, asked: map[string]bool{}}
}

// run goes through the steps. Its error is a *fault.Fault, or wraps what ended ctx.
func (s *search) run(ctx context.Context) (*Result, error) {
	err := s.begin(ctx)
	if err == nil && !s.enough() {
		s.look(ctx)
	}
	for _, step := range []struct {
		note string
		do   func(context.Context)
	}{{"trying the usual addresses", s.guess}, {"looking at other pages", s.searchPages}} {
		if err != nil || s.enough() || ctx.Err() != nil {
			break
		}
		s.progress(ctx, step.note)
		step.do(ctx)
	}
	if ctx.Err() != nil {
		s.timeUp()
	}
	if len(s.feeds) == 0 {
		if err = cmp.Or(err, s.pageFault); err != nil {
			return nil, err
		}
	}
	return s.result(), nil
}

// begin opens the address and meanwhile tries what the rules for its host say. When these found a feed the page is not waited
// for much longer: pages of channels may be large, slow, or ask for consent.
func (s *search) begin(ctx context.Context) error {
	s.progress(ctx, "opening the page")
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	opened := make(chan struct{})
	wg.Go(func() {
		s.verify(ctx, guessesOf(channel.ByURL(s.starts[0])))
		if !s.enough() {
			return
		}
		grace := time.NewTimer(pageGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
			cancel(errNotNeeded)
		case <-opened:
		}
	})
	err := s.open(opening)
	close(opened)
	wg.Wait()
	if s.hasFeeds() {
		return nil
	}
	return err
}

var errNotNeeded = errors.New("the page is not needed any more")

// open fetches the address and reads what is there: a feed, which is the answer, or a page.
func (s *search) open(ctx context.Context) error {
	var first error
	for _, u := range s.starts {
		err := s.openAt(ctx, u, 0)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		var f *fault.Fault
		if ctx.Err() != nil || !errors.As(err, &f) || f.Kind != fault.Unreachable {
			break // http would not do better
		}
	}
	return first
}

// openAt reads the page at u, and the one that it sends its readers to.
func (s *search) openAt(ctx context.Context, u *url.URL, refreshes int) error {
	c := candidate{url: u, origin: rank.Given}
	if !s.claim(u) {
		return nil
	}
	response, err := s.asker.get(ctx, u, acceptPage)
	if err != nil {
		if !errors.Is(err, errNotNeeded) {
			s.note(ctx, c, err)
		}
		return err
	}
	final, err := url.Parse(response.URL)
	if err != nil {
		final = u
	}
	s.mu.Lock()
	s.at = final
	s.mu.Unlock()
	if s.pageFault = faultOf(response); s.pageFault != nil {
		s.note(ctx, c, s.pageFault)
	} else if document, err := readFeed(response); err == nil {
		s.found(c, response, &document)
		return nil
	} else if f := fault.From(err); f.Kind == fault.Unreadable {
		s.pageFault = fault.New(f.Kind, "%s: %s", fetch.Redact(response.URL), f.Message)
		s.record(c, f.Message)
	} else {
		s.record(c, "page")
	}
	if response.Status >= http.StatusInternalServerError {
		return s.pageFault // whoever is in trouble is not asked for more
	}
	s.page, s.hints = page.Read(response.Body, final, response.Header), channel.InPage(final, response.Body)
	if next := s.page.Refresh; next != nil && refreshes < maxRefreshes && len(s.page.Declared) == 0 {
		before := s.page
		if err := s.openAt(ctx, next, refreshes+1); err != nil {
			s.page, s.pageFault = before, nil
		}
	}
	return nil
}

// look verifies what the page names.
func (s *search) look(ctx context.Context) {
	if s.page == nil {
		return
	}
	s.progress(ctx, "verifying the feeds that the page names")
	s.verify(ctx, slices.Concat(guessesOf(s.hints), linksOf(s.page, maxFirstLook)))
}

// linksOf lists the candidates that a page names.
func linksOf(p *page.Page, most int) []candidate {
	var sureOnes, others []page.Link
	for _, l := range p.Anchors {
		if l.Sure {
			sureOnes = append(sureOnes, l)
		} else {
			others = append(others, l)
		}
	}
	anchors := slices.Concat(sureOnes[:min(len(sureOnes), most)], others[:min(len(others), maxUnsure)])
	return append(candidates(p.Declared, rank.Declared, most), candidates(anchors, rank.Anchor, len(anchors))...)
}

// guess tries the usual addresses, a few at a time.
func (s *search) guess(ctx context.Context) {
	if s.page == nil {
		return
	}
	var extra []*url.URL
	if s.page.Shell {
		s.say("the page is an empty shell that its scripts fill; only what they mention, its manifest and the usual addresses could be looked at")
		extra = s.manifest(ctx)
	}
	for i, list := 0, guesses(s.page, extra); i < len(list) && !s.enough() && ctx.Err() == nil; i += wave {
		if why := s.asker.blocked(s.page.URL.Host); why != "" {
			s.say(fmt.Sprintf("%s %s, so no addresses were guessed", s.page.URL.Host, why))
			return
		}
		var some []candidate
		for n, u := range list[i:min(i+wave, len(list))] {
			some = append(some, candidate{url: u, origin: rank.Guessed, position: i + n})
		}
		s.verify(ctx, some)
	}
}

// manifest asks an application's manifest where it begins.
func (s *search) manifest(ctx context.Context) []*url.URL {
	u, ok := address.Resolve(s.page.URL, s.page.Manifest)
	if !ok || !s.claim(u) {
		return nil
	}
	response, err := s.asker.get(ctx, u, "application/manifest+json, application/json, */*;q=0.5")
	if err == nil {
		err = faultOf(response)
	}
	c := candidate{url: u, origin: rank.Guessed}
	if err != nil {
		s.note(ctx, c, err)
		return nil
	}
	s.record(c, "manifest")
	return manifestFolders(u, response.Body[:min(len(response.Body), manifestBytes)])
}

// searchPages looks at pages of the site that may know more: those that were met, the first page, those that the page links to.
func (s *search) searchPages(ctx context.Context) {
	if s.page == nil {
		return
	}
	for i, links := 0, slices.Concat([]page.Link{{URL: root(s.page.URL)}}, s.page.Pages); i < maxMorePages && ctx.Err() == nil && !s.enough(); i++ {
		p := s.takeMore()
		for p == nil && len(links) > 0 {
			p = s.anotherPage(ctx, links[0].URL)
			links = links[1:]
			if s.enough() {
				return
			}
		}
		if p == nil {
			return
		}
		s.verify(ctx, linksOf(p, maxPerPage))
	}
}

// anotherPage fetches a page; nil when there is none, or when it has been asked before.
func (s *search) anotherPage(ctx context.Context, u *url.URL) *page.Page {
	if !s.claim(u) {
		return nil
	}
	c := candidate{url: u, origin: rank.Anchor}
	response, err := s.asker.get(ctx, u, acceptPage)
	if err == nil {
		err = faultOf(response)
	}
	if err != nil {
		s.note(ctx, c, err)
		return nil
	}
	if document, err := readFeed(response); err == nil {
		s.found(c, response, &document)
		return nil
	}
	final, err := url.Parse(response.URL)
	if err != nil {
		return nil
	}
	s.record(c, "page")
	return page.Read(response.Body, final, response.Header)
}
