package rank_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/rank"
)

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Comment, tag and category feeds are told by their address or their titles, in several languages (FEED-BUGS 95).
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at, title string
		want      rank.Role
	}{
		{"https://example.com/feed/", "My Blog", rank.Main},
		{"https://example.com/feed/", "No comment", rank.Main},
		{"https://example.com/feeds/posts/default", "", rank.Main},
		{"https://example.com/commentary/feed", "", rank.Main},
		{"https://example.com/comments/feed/", "", rank.Comments},
		{"https://example.com/feeds/comments/default", "", rank.Comments},
		{"https://example.com/?feed=comments-rss2", "", rank.Comments},
		{"https://example.com/comments.xml", "", rank.Comments},
		{"https://example.com/2026/01/post/feed/", "Comments on: A post", rank.Comments},
		{"https://example.com/2026/01/post/feed/", "My Blog » A post Comments Feed", rank.Comments},
		{"https://example.com/feed2", "Kommentare zu: Mein Beitrag", rank.Comments},
		{"https://example.com/feed2", "Commentaires sur Mon blog", rank.Comments},
		{"https://example.com/tag/go/feed/", "", rank.Part},
		{"https://example.com/categories/go/index.xml", "", rank.Part},
		{"https://example.com/author/ada/feed/", "", rank.Part},
		{"https://example.com/feeds/posts/default/-/go", "", rank.Part},
		{"https://example.com/feed?cat=3", "", rank.Part},
		{"https://example.com/x.xml", "My Blog » go Category Feed", rank.Part},
		{"https://example.com/x.xml", "Tag: go", rank.Part},
	} {
		if got := rank.RoleOf(parse(t, c.at), "", c.title); got != c.want {
			t.Errorf("%s %q: %d, want %d", c.at, c.title, got, c.want)
		}
	}
}

// The score is what the table in the README says.
func TestScore(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for i, c := range []struct {
		facts rank.Facts
		want  int
	}{
		{rank.Facts{Origin: rank.Given}, 100},
		{rank.Facts{Origin: rank.Given, Role: rank.Comments, Position: 9}, 100},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day}, 75},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: 400 * day}, 65},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: 2000 * day}, 55},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: -1}, 65},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Position: 1}, 74},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Position: 50}, 70},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Under: true}, 85},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Role: rank.Part}, 50},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Role: rank.Part, Under: true}, 85},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Role: rank.Comments}, 30},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Entries: 10, Age: day, Role: rank.Comments, Under: true}, 30},
		{rank.Facts{Origin: rank.Declared, SameSite: true, Age: -1}, 45},
		{rank.Facts{Origin: rank.Channel, SameSite: true, Entries: 10, Age: day}, 75},
		{rank.Facts{Origin: rank.Anchor, SameSite: true, Entries: 10, Age: day}, 65},
		{rank.Facts{Origin: rank.Anchor, Entries: 10, Age: day}, 60},
		{rank.Facts{Origin: rank.Guessed, SameSite: true, Entries: 10, Age: day}, 60},
		{rank.Facts{Origin: rank.Guessed, Role: rank.Comments, Age: -1}, 0},
	} {
		if got := rank.Score(c.facts); got != c.want {
			t.Errorf("%d: %+v: %d, want %d", i, c.facts, got, c.want)
		}
	}
}

// Whatever else is true of them, comments come behind the site's own feed of the same origin, and a part of the site does
// unless it was asked for; no score leaves its range, and only what was asked about has 100.
func TestScoreKeepsItsOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		f := rank.Facts{
			Origin: rank.Origin(2 + random.IntN(4)), Position: random.IntN(8), SameSite: random.IntN(2) == 0, Entries: 1 + random.IntN(30),
			Age: time.Duration(random.Int64N(int64(4 * 365 * 24 * time.Hour))),
		}
		comments, part := f, f
		comments.Role, part.Role = rank.Comments, rank.Part
		comments.Position, part.Position = 0, 0
		comments.Under = random.IntN(2) == 0
		if main, c, p := rank.Score(f), rank.Score(comments), rank.Score(part); main <= c || main <= p || p <= c || main >= 100 || c < 0 {
			t.Fatalf("%+v: main %d, part %d, comments %d", f, main, p, c)
		}
	}
}

// A feed lies under a page when it is in that page's folder, and the root is nobody's folder.
func TestUnder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page, feed string
		want       bool
	}{
		{"https://e.example/blog/", "https://e.example/blog/feed.xml", true},
		{"https://e.example/blog", "https://e.example/blog/feed.xml", true},
		{"https://e.example/blog/post.html", "https://e.example/blog/feed.xml", true},
		{"https://e.example/blog", "https://e.example/blogs/feed.xml", false},
		{"https://e.example/blog/", "https://e.example/feed.xml", false},
		{"https://e.example/", "https://e.example/feed.xml", false},
		{"https://e.example/index.html", "https://e.example/feed.xml", false},
		{"https://e.example/blog/", "https://f.example/blog/feed.xml", false},
	} {
		if got := rank.Under(parse(t, c.page), parse(t, c.feed)); got != c.want {
			t.Errorf("%s %s: %v", c.page, c.feed, got)
		}
	}
}

// entries makes posts with the given numbers.
func entries(site string, numbers ...int) []rank.Entry {
	out := make([]rank.Entry, len(numbers))
	for i, n := range numbers {
		out[i] = rank.Entry{URL: fmt.Sprintf("%s/p/%d", site, n), Title: fmt.Sprintf("Post %d", n)}
	}
	return out
}

func count(from, to int) []int {
	var out []int
	for n := from; n >= to; n-- {
		out = append(out, n)
	}
	return out
}

// Twins become one feed, with the addresses of the others behind it, and feeds that only share some entries stay apart.
func TestUnite(t *testing.T) {
	t.Parallel()
	const site = "https://e.example"
	feed := func(at, format string, list []rank.Entry) rank.Feed {
		u := parse(t, at)
		return rank.Feed{URL: u, Type: format, Title: "E", Entries: list, Facts: rank.Facts{Origin: rank.Declared, Role: rank.RoleOf(u), Entries: len(list)}}
	}
	var untitled, anonymous []rank.Entry
	for n := range 10 {
		untitled = append(untitled, rank.Entry{URL: fmt.Sprintf("%s/a/%d", site, n), Title: "Untitled"})
		anonymous = append(anonymous, rank.Entry{URL: fmt.Sprintf("%s/b/%d", site, n), Title: "Untitled"})
	}
	for name, c := range map[string]struct {
		feeds []rank.Feed
		want  string
	}{
		"RSS and Atom":             {[]rank.Feed{feed(site+"/rss", "rss 2.0", entries(site, count(10, 1)...)), feed(site+"/atom", "atom 1.0", entries(site, count(10, 1)...))}, "/atom=/rss"},
		"three formats":            {[]rank.Feed{feed(site+"/j", "json 1.1", entries(site, count(10, 1)...)), feed(site+"/r", "rss 2.0", entries(site, count(10, 1)...)), feed(site+"/a", "atom", entries(site, count(10, 1)...))}, "/a=/r=/j"},
		"the longer one is kept":   {[]rank.Feed{feed(site+"/atom", "atom 1.0", entries(site, count(20, 11)...)), feed(site+"/rss", "rss 2.0", entries(site, count(20, 1)...))}, "/rss=/atom"},
		"a post came in between":   {[]rank.Feed{feed(site+"/rss", "rss 2.0", entries(site, count(10, 1)...)), feed(site+"/atom", "atom 1.0", entries(site, count(11, 2)...))}, "/atom=/rss"},
		"other addresses":          {[]rank.Feed{feed(site+"/rss", "rss 2.0", entries("https://proxy.example", count(10, 1)...)), feed(site+"/atom", "atom", entries(site, count(10, 1)...))}, "/atom=/rss"},
		"two spellings":            {[]rank.Feed{feed("http://e.example/feed", "rss 2.0", entries(site, 1)), feed(site+"/feed/", "rss 2.0", entries(site, 1))}, "/feed/=/feed"},
		"same format, two names":   {[]rank.Feed{feed(site+"/feed", "rss 2.0", entries(site, count(10, 1)...)), feed(site+"/?feed=rss2", "rss 2.0", entries(site, count(10, 1)...))}, "/feed=/?feed=rss2"},
		"a category of the newest": {[]rank.Feed{feed(site+"/all.xml", "rss 2.0", entries(site, count(10, 1)...)), feed(site+"/go.xml", "rss 2.0", entries(site, 10, 9, 8))}, "/all.xml /go.xml"},
		"a tag with all":           {[]rank.Feed{feed(site+"/feed", "rss 2.0", entries(site, 2, 1)), feed(site+"/tag/go/feed", "rss 2.0", entries(site, 2, 1))}, "/feed /tag/go/feed"},
		"two blogs":                {[]rank.Feed{feed(site+"/a", "rss 2.0", entries(site+"/a", count(10, 1)...)[:0]), feed(site+"/b", "rss 2.0", entries(site+"/b", 1))}, "/a /b"},
		"some in common":           {[]rank.Feed{feed(site+"/a", "rss 2.0", entries(site, 10, 8, 6, 4, 2)), feed(site+"/b", "atom", entries(site, 10, 9, 8, 7, 6))}, "/a /b"},
		"titles that say nothing":  {[]rank.Feed{feed(site+"/a", "rss 2.0", untitled), feed(site+"/b", "atom", anonymous)}, "/a /b"},
		"empty twins":              {[]rank.Feed{feed(site+"/a.rss", "rss 2.0", nil), feed(site+"/a.atom", "atom", nil)}, "/a.atom=/a.rss"},
		"two empty ones":           {[]rank.Feed{feed(site+"/a.rss", "rss 2.0", nil), feed(site+"/b.rss", "rss 2.0", nil)}, "/a.rss /b.rss"},
	} {
		var parts []string
		for _, f := range rank.Unite(c.feeds) {
			part := f.URL.RequestURI()
			for _, u := range f.Alternates {
				part += "=" + u.RequestURI()
			}
			parts = append(parts, part)
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// The main feed comes first, and what has the same score stays in the order of the page.
func TestSort(t *testing.T) {
	t.Parallel()
	feeds := []rank.Feed{
		{Title: "comments", Facts: rank.Facts{Origin: rank.Declared, Role: rank.Comments, Entries: 9}},
		{Title: "tag", Facts: rank.Facts{Origin: rank.Declared, Role: rank.Part, Entries: 9}},
		{Title: "main", Facts: rank.Facts{Origin: rank.Declared, Entries: 9}},
		{Title: "tag 2", Facts: rank.Facts{Origin: rank.Declared, Role: rank.Part, Entries: 9}},
	}
	rank.Sort(feeds)
	var titles []string
	for _, f := range feeds {
		titles = append(titles, f.Title)
	}
	if got := strings.Join(titles, ", "); got != "main, tag, tag 2, comments" {
		t.Errorf("got %s", got)
	}
}
