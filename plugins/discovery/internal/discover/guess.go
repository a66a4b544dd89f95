package discover

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/plugins/discovery/internal/page"
)

const (
	wave       = 6  // guesses that are tried before it is seen whether one was good
	maxGuesses = 36 // of a task
)

// usual are the names that feeds have, the commonest first.
func usual() []string {
	return []string{
		"feed", "rss.xml", "feed.xml", "atom.xml", "index.xml", "rss",
		"feed/", "blog/feed", "blog/rss.xml", "blog/feed.xml", "blog/index.xml", "blog/atom.xml",
		"feed.json", "?feed=rss2", "feeds/posts/default", "index.rdf", "blog/rss", "news/rss.xml",
		"atom", "rss/", "feed.rss", "feed.atom", "news/feed", "posts/index.xml",
		"rss.php", "feed.php", "latest.rss", "feeds/all.atom.xml", "blog-feed.xml", "podcast.xml",
	}
}

// near are those that are tried in the folder of the page as well.
func near() []string { return []string{"feed", "rss.xml", "feed.xml", "atom.xml", "index.xml", "rss"} }

// made says where the feeds are of what a program has made.
func made() []struct{ generator, path string } {
	return []struct{ generator, path string }{
		{"wordpress", "feed/"}, {"ghost", "rss/"}, {"hugo", "index.xml"}, {"jekyll", "feed.xml"}, {"hexo", "atom.xml"}, {"discourse", "latest.rss"},
		{"drupal", "rss.xml"}, {"joomla", "?format=feed&type=rss"}, {"pelican", "feeds/all.atom.xml"}, {"wix", "blog-feed.xml"},
		{"blogger", "feeds/posts/default"}, {"gatsby", "rss.xml"}, {"astro", "rss.xml"}, {"eleventy", "feed.xml"}, {"zola", "atom.xml"},
		{"zola", "rss.xml"}, {"docusaurus", "blog/rss.xml"}, {"nikola", "rss.xml"}, {"dotclear", "feed/atom"}, {"movable type", "atom.xml"},
		{"serendipity", "feeds/index.rss2"}, {"textpattern", "rss/"}, {"typepad", "atom.xml"}, {"squarespace", "?format=rss"},
		{"mediawiki", "index.php?title=Special:RecentChanges&feed=atom"}, {"mediawiki", "w/index.php?title=Special:RecentChanges&feed=atom"},
	}
}

// guesses lists the addresses at which a feed of a page may be that names none: what its scripts mention, what its generator
// makes, the usual names in its folder, in the folders of extra, and at the root.
func guesses(p *page.Page, extra []*url.URL) []*url.URL {
	var out []*url.URL
	seen := map[string]bool{}
	add := func(base *url.URL, ref string) {
		u, ok := address.Resolve(base, ref)
		if ok && len(out) < maxGuesses && !seen[u.String()] && u.String() != p.URL.String() {
			seen[u.String()] = true
			out = append(out, u)
		}
	}
	for _, l := range p.Mentions {
		add(p.URL, l.URL.String())
	}
	top := root(p.URL)
	folders := slices.Concat(extra, []*url.URL{folder(p.URL)})
	for _, m := range made() {
		if strings.Contains(p.Generator, m.generator) {
			for _, base := range slices.Concat(folders, []*url.URL{top}) {
				add(base, m.path)
			}
		}
	}
	for _, base := range folders {
		if base.Path != "/" {
			for _, name := range near() {
				add(base, name)
			}
		}
	}
	for _, name := range usual() {
		add(top, name)
	}
	return out
}

// folder is the folder of a page: /blog/ for /blog, /blog/ and /blog/index.html.
func folder(u *url.URL) *url.URL {
	at := root(u)
	p := u.Path
	if strings.Contains(path.Base(p), ".") {
		p = path.Dir(p)
	}
	at.Path = strings.TrimSuffix(p, "/") + "/"
	return at
}

// manifestFolders reads the manifest of an application: where it begins, and its scope.
func manifestFolders(manifest *url.URL, body []byte) []*url.URL {
	var m struct {
		StartURL string `json:"start_url"`
		Scope    string `json:"scope"`
	}
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	var out []*url.URL
	for _, ref := range []string{m.StartURL, m.Scope} {
		if u, ok := address.Resolve(manifest, ref); ok && address.Site(u) == address.Site(manifest) {
			out = append(out, folder(u))
		}
	}
	return out
}
