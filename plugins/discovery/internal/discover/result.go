package discover

import (
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

// Payload is what a task of kind discovery asks for.
type Payload struct {
	URL string `json:"url"`
	// Fresh looks again, whatever is known or kept from before.
	Fresh bool `json:"fresh,omitempty"`
}

// Result is what was found.
type Result struct {
	// Feeds are the feeds, the one that is most likely meant first; empty when there are none.
	Feeds []Feed `json:"feeds"`
	// Site is the address of the page that was looked at, Title its title.
	Site  string `json:"site"`
	Title string `json:"title"`
	// Tried are the addresses that were asked, with what came of each.
	Tried []Tried `json:"tried"`
	// Notes say what a person should know, such as that the page is filled by scripts or that the time ran out.
	Notes []string `json:"notes"`
	// From is "search", "cache" or "store".
	From string `json:"from"`
	// FoundAt is when it was found.
	FoundAt time.Time `json:"found_at"`
}

// Feed is one feed, read and found to be one.
type Feed struct {
	URL         string `json:"url"`
	Title       string `json:"title"`
	Description string `json:"description"`
	// Type is the format, such as "rss 2.0".
	Type string `json:"type"`
	// Icon is an address that has not been asked, or "".
	Icon string `json:"icon"`
	// Entries is how many entries the feed shows.
	Entries int `json:"entries"`
	// LastPost is the date of the newest entry; null when no entry has one.
	LastPost *time.Time `json:"last_post"`
	// Score is from 0 to 100, see the README.
	Score int `json:"score"`
	// Origin is how it was found: given, declared, channel, anchor or guessed.
	Origin string `json:"origin"`
	// Alternates are addresses of the same feed in other formats or spellings.
	Alternates []string `json:"alternates"`
}

// Tried is an address that was asked.
type Tried struct {
	URL    string `json:"url"`
	Origin string `json:"origin"`
	// Result is "feed", "page", or why it is neither.
	Result string `json:"result"`
}

// Where a result comes from.
const (
	fromSearch = "search"
	fromCache  = "cache"
	fromStore  = "store"
)

// Bounds of a result; a person does not read more, and a cache must hold it.
const (
	maxFeeds       = 50
	maxTried       = 100
	maxDescription = 500
	maxTitle       = 300
)

// feedOf puts a ranked feed into the words of the result. icon is the page's, for a feed without its own.
func feedOf(f *rank.Feed, icon string) Feed {
	out := Feed{
		URL: f.URL.String(), Title: clip(plain(f.Title), maxTitle), Description: clip(plain(f.Description), maxDescription), Type: f.Type, Icon: f.Icon,
		Entries: f.Facts.Entries, Score: rank.Score(f.Facts), Origin: f.Facts.Origin.String(), Alternates: []string{},
	}
	if out.Title == "" {
		out.Title = f.URL.Host
	}
	if _, ok := address.Resolve(f.URL, out.Icon); !ok {
		out.Icon = icon
	}
	if !f.LastPost.IsZero() {
		at := f.LastPost.UTC().Truncate(time.Second)
		out.LastPost = &at
	}
	for _, u := range f.Alternates {
		out.Alternates = append(out.Alternates, u.String())
	}
	return out
}

// plain makes text of what may be HTML: a title is text, wherever it is shown.
func plain(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return strings.Join(strings.Fields(text), " ")
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	hidden := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(b.String()), " ")
		case html.TextToken:
			if !hidden {
				b.WriteString(html.UnescapeString(string(z.Text())))
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			hidden = false
			b.WriteByte(' ')
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
			b.WriteByte(' ')
		}
	}
}

// clip shortens text to n characters.
func clip(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}

// root is the address of a host's first page.
func root(u *url.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: "/"}
}
