// Package channel knows where the feeds of well-known services are.
//
// It owns one table of rules: which host, which path, which feeds. Many channel pages name no feed, or are built by scripts, or
// ask for consent first; a rule gives the feed's address without looking at the page (ByURL), or out of it (InPage). What a
// rule gives is only likely: the worker verifies it like everything else. The functions are pure.
package channel

import (
	"net/url"
	"regexp"
	"strings"
)

// Guess is where a feed should be.
type Guess struct {
	URL *url.URL
	// Title says what it holds when the feed itself should not.
	Title string
}

// rule turns the path of an address on a host into addresses of feeds.
type rule struct {
	// host matches the whole host without "www." and "m."; nil matches any that no other rule knows.
	host *regexp.Regexp
	// path matches the path without a slash at its end.
	path *regexp.Regexp
	// feeds are templates: $1 and so on are groups of path, $h1 of host, $host the host itself, $path the path and $NAME? the value
	// of a parameter of the query (the rule does not apply without it).
	feeds []string
}

func hosts(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }
func paths(pattern string) *regexp.Regexp { return regexp.MustCompile(`^` + pattern + `$`) }

// table is read from the top: the first rule that fits is used.
//
//nolint:gochecknoglobals // a table of compiled patterns; never written
var table = []rule{
	// A list shown in a video's page says what the person wants before the video's channel does.
	{hosts(`(?:music\.)?youtube\.com`), paths(`/(?:playlist|watch)`), []string{"https://www.youtube.com/feeds/videos.xml?playlist_id=$list?"}},
	{hosts(`(?:music\.)?youtube\.com`), paths(`/channel/(UC[\w-]{22})(?:/.*)?`), []string{"https://www.youtube.com/feeds/videos.xml?channel_id=$1"}},
	{hosts(`youtube\.com`), paths(`/user/([\w.-]+)(?:/.*)?`), []string{"https://www.youtube.com/feeds/videos.xml?user=$1"}},

	{hosts(`github\.com`), paths(`/([\w.-]+)/([\w.-]+)/(?:commits|tree)/(.+)`), []string{"https://github.com/$1/$2/commits/$3.atom", "https://github.com/$1/$2/releases.atom"}},
	{hosts(`github\.com`), paths(`/([\w.-]+)/([\w.-]+)/tags`), []string{"https://github.com/$1/$2/tags.atom", "https://github.com/$1/$2/releases.atom"}},
	{hosts(`github\.com`), paths(`/(?:features|topics|trending|marketplace|sponsors|settings|explore|collections|login|about)(?:/.*)?`), nil},
	{hosts(`github\.com`), paths(`/([\w.-]+)/([\w.-]+?)(?:\.git)?(?:/(?:releases|issues|pulls|blob|wiki|actions|discussions).*)?`), []string{"https://github.com/$1/$2/releases.atom", "https://github.com/$1/$2/commits.atom", "https://github.com/$1/$2/tags.atom"}},
	{hosts(`github\.com`), paths(`/([\w-]+)`), []string{"https://github.com/$1.atom"}},
	{hosts(`gitlab\.com`), paths(`/(\w[\w.-]*(?:/\w[\w.-]*)+)(?:/-/.*)?`), []string{"https://gitlab.com/$1/-/releases.atom", "https://gitlab.com/$1/-/tags?format=atom", "https://gitlab.com/$1.atom"}},
	{hosts(`gitlab\.com`), paths(`/([\w.-]+)`), []string{"https://gitlab.com/$1.atom"}},
	{hosts(`codeberg\.org|gitea\.com`), paths(`/([\w.-]+)/([\w.-]+)(?:/.*)?`), []string{"https://$host/$1/$2/releases.rss", "https://$host/$1/$2.rss"}},
	{hosts(`codeberg\.org|gitea\.com`), paths(`/([\w.-]+)`), []string{"https://$host/$1.rss"}},

	{hosts(`(?:old\.|new\.)?reddit\.com`), paths(``), []string{"https://www.reddit.com/.rss"}},
	{hosts(`(?:old\.|new\.)?reddit\.com`), paths(`/(r|u|user)/([\w+-]+)(?:/(hot|new|top|rising|submitted|comments))?`), []string{"https://www.reddit.com/$1/$2/$3/.rss"}},
	{hosts(`(?:old\.|new\.)?reddit\.com`), paths(`(/r/[\w-]+/comments/\w+(?:/\w*)?)`), []string{"https://www.reddit.com$1/.rss"}},
	{hosts(`news\.ycombinator\.com`), paths(`(?:/news)?`), []string{"https://news.ycombinator.com/rss"}},
	{hosts(`stackoverflow\.com|superuser\.com|serverfault\.com|askubuntu\.com|([\w-]+)\.stackexchange\.com`), paths(`/questions/tagged/([^/]+)`), []string{"https://$host/feeds/tag/$1"}},
	{hosts(`stackoverflow\.com|superuser\.com|serverfault\.com|askubuntu\.com|([\w-]+)\.stackexchange\.com`), paths(`/questions/(\d+)(?:/.*)?`), []string{"https://$host/feeds/question/$1"}},
	{hosts(`stackoverflow\.com|superuser\.com|serverfault\.com|askubuntu\.com|([\w-]+)\.stackexchange\.com`), paths(`/users/(\d+)(?:/.*)?`), []string{"https://$host/feeds/user/$1"}},

	{hosts(`medium\.com`), paths(`/(@[\w.-]+)(?:/.*)?`), []string{"https://medium.com/feed/$1"}},
	{hosts(`medium\.com`), paths(`/tag/([\w-]+)(?:/.*)?`), []string{"https://medium.com/feed/tag/$1"}},
	{hosts(`medium\.com`), paths(`/([\w-]+)(?:/.*)?`), []string{"https://medium.com/feed/$1"}},
	{hosts(`([\w-]+)\.medium\.com`), paths(`(?:/.*)?`), []string{"https://$host/feed"}},
	{hosts(`([\w-]+)\.substack\.com`), paths(`(?:/.*)?`), []string{"https://$host/feed"}},
	{hosts(`([\w-]+)\.tumblr\.com`), paths(`/tagged/([^/]+)`), []string{"https://$host/tagged/$1/rss", "https://$host/rss"}},
	{hosts(`([\w-]+)\.tumblr\.com`), paths(`(?:/.*)?`), []string{"https://$host/rss"}},
	{hosts(`tumblr\.com`), paths(`/(?:blog/(?:view/)?)?([\w-]+)(?:/.*)?`), []string{"https://$1.tumblr.com/rss"}},
	{hosts(`([\w-]+)\.wordpress\.com`), paths(`/(category|tag|author)/([^/]+)`), []string{"https://$host/$1/$2/feed/", "https://$host/feed/"}},
	{hosts(`([\w-]+)\.wordpress\.com`), paths(`(?:/.*)?`), []string{"https://$host/feed/"}},
	{hosts(`([\w-]+)\.blogspot\.(?:com?|[a-z]{2,3})(?:\.[a-z]{2})?`), paths(`/search/label/([^/]+)`), []string{"https://$host/feeds/posts/default/-/$1", "https://$host/feeds/posts/default"}},
	{hosts(`([\w-]+)\.blogspot\.(?:com?|[a-z]{2,3})(?:\.[a-z]{2})?`), paths(`(?:/.*)?`), []string{"https://$host/feeds/posts/default"}},
	{hosts(`([\w-]+)\.livejournal\.com`), paths(`(?:/.*)?`), []string{"https://$host/data/rss"}},
	{hosts(`([\w-]+)\.dreamwidth\.org`), paths(`(?:/.*)?`), []string{"https://$host/data/atom"}},
	{hosts(`([\w-]+)\.bearblog\.dev`), paths(`(?:/.*)?`), []string{"https://$host/feed/"}},
	{hosts(`dev\.to`), paths(`/([\w-]+)(?:/.*)?`), []string{"https://dev.to/feed/$1"}},

	{hosts(`bsky\.app`), paths(`/profile/([\w.:-]+)(?:/.*)?`), []string{"https://bsky.app/profile/$1/rss"}},
	{hosts(`vimeo\.com`), paths(`/(channels|groups)/([\w-]+)(?:/.*)?`), []string{"https://vimeo.com/$1/$2/videos/rss"}},
	{hosts(`vimeo\.com`), paths(`/([a-z][\w-]*)(?:/videos)?`), []string{"https://vimeo.com/$1/videos/rss"}},
	{hosts(`dailymotion\.com`), paths(`/([\w-]+)`), []string{"https://www.dailymotion.com/rss/user/$1"}},
	{hosts(`pinboard\.in`), paths(`/u:([\w-]+)`), []string{"https://feeds.pinboard.in/rss/u:$1/"}},
	{hosts(`(?:podcasts|itunes)\.apple\.com`), paths(`(?:/[a-z]{2})?/podcast(?:/[^/]+)?/id(\d+)`), []string{"https://itunes.apple.com/lookup?entity=podcast&id=$1"}},

	// Any host: the paths of software of the fediverse.
	{nil, paths(`/(@[\w.-]+)`), []string{"https://$host/$1.rss"}},
	{nil, paths(`/users/([\w.-]+)`), []string{"https://$host/users/$1.rss", "https://$host/users/$1.atom"}},
	{nil, paths(`/c/([\w.@-]+)`), []string{"https://$host/feeds/c/$1.xml?sort=New"}}, // Lemmy
	{nil, paths(`/video-channels/([\w.-]+)(?:/.*)?`), []string{"https://$host/feeds/videos.xml?videoChannelName=$1"}},
}

// ByURL says where the feeds of a channel page are, the best first; none for an address that no rule knows.
func ByURL(u *url.URL) []Guess {
	host := strings.TrimPrefix(strings.TrimPrefix(u.Host, "www."), "m.")
	path := strings.TrimRight(u.EscapedPath(), "/")
	known := false
	for _, r := range table {
		if r.host == nil && known || r.host != nil && !r.host.MatchString(host) {
			continue
		}
		known = known || r.host != nil
		m := r.path.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		if guesses, ok := r.fill(u, m); ok {
			return guesses
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$(?:host|[a-z]+\?|\d)`)

// fill puts the values into the templates; false when a parameter that a template needs is missing.
func (r rule) fill(u *url.URL, groups []string) ([]Guess, bool) {
	var out []Guess
	for _, template := range r.feeds {
		complete := true
		text := variable.ReplaceAllStringFunc(template, func(name string) string {
			switch {
			case name == "$host":
				return u.Host
			case strings.HasSuffix(name, "?"):
				value := u.Query().Get(name[1 : len(name)-1])
				complete = complete && value != ""
				return url.QueryEscape(value)
			}
			return groups[name[1]-'0']
		})
		if !complete {
			return nil, false
		}
		text = strings.Replace(text, "//.rss", "/.rss", 1) // a part that was not there
		if r.host == nil {
			text = u.Scheme + strings.TrimPrefix(text, "https")
		}
		if feed, err := url.Parse(text); err == nil {
			out = append(out, Guess{URL: feed})
		}
	}
	return out, true
}
