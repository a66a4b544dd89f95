package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// post is one article in the model of a site, whatever its feed makes of it.
type post struct {
	number, version int
	published       time.Time
}

// Fifty pulls of a feed through everything that publishers do to identity: each article stays one entry, and each edit is seen.
func testFiftyPulls(t *testing.T, open Open) {
	t.Helper()
	const pulls, window = 50, 12
	store := open(t, "a")
	var posts []post
	for i := range window {
		posts = append(posts, post{number: i, published: begin().Add(-time.Duration(window-i) * time.Hour)})
	}
	var id int64
	for n := range pulls {
		fresh, edited := 0, 0
		if n == 0 {
			fresh = window
		}
		if n > 0 && n%3 == 0 { // a new article
			posts = append(posts, post{number: len(posts), published: begin().Add(time.Duration(n) * time.Minute)})
			fresh++
		}
		if n > 0 && n%4 == 0 { // an edited headline
			posts[len(posts)-2-n%5].version++
			edited++
		}
		var entries []feed.Entry
		for i := len(posts) - 1; i >= len(posts)-window; i-- {
			entries = append(entries, appearance(&posts[i], n))
		}
		saved := mustSave(t, store, Pull(n, entries))
		if saved.NewEntries != fresh || saved.UpdatedEntries != edited || saved.Entries != len(posts) {
			t.Errorf("pull %d (%s): %d new and %d updated of %d, want %d and %d of %d", n, era(n), saved.NewEntries, saved.UpdatedEntries, saved.Entries, fresh, edited, len(posts))
		}
		id = saved.Feed.ID
	}
	got, err := store.Entries(t.Context(), id, 1000)
	if err != nil || len(got) != len(posts) {
		t.Fatalf("%d entries, want %d (%v)", len(got), len(posts), err)
	}
	for i := range got {
		want := &posts[len(posts)-1-i]
		if got[i].Title != title(want) || got[i].Revision != want.version+1 || (want.version > 0) != !got[i].EditedAt.IsZero() {
			t.Errorf("entry %d is %q in revision %d, want %q in revision %d", i, got[i].Title, got[i].Revision, title(want), want.version+1)
		}
	}
}

func title(p *post) string {
	if p.version > 0 {
		return fmt.Sprintf("Article %d, corrected %d times", p.number, p.version)
	}
	return fmt.Sprintf("Article %d", p.number)
}

// era names what the publisher does at a pull.
func era(n int) string {
	return []string{
		"guids and http", "https", "another host", "back to http", "the host flips", "one guid for all", "guids again", "no guids", "new guids for all", "tracking parameters",
	}[n/5]
}

// appearance is how an article stands in the feed at a pull.
func appearance(p *post, n int) feed.Entry {
	scheme, host, query := "http", "example.com", ""
	guid := fmt.Sprintf("http://example.com/?p=%d", p.number)
	switch era(n) {
	case "https":
		scheme, guid = "https", fmt.Sprintf("https://example.com/?p=%d", p.number)
	case "another host":
		host, guid = "www.example.com", fmt.Sprintf("http://www.example.com/?p=%d", p.number)
	case "the host flips":
		if n%2 == 0 {
			host, guid = "example.org", fmt.Sprintf("http://example.org/?p=%d", p.number)
		}
	case "one guid for all":
		guid = "http://example.com/"
	case "no guids":
		guid = ""
	case "new guids for all":
		guid = fmt.Sprintf("urn:uuid:%08d", p.number*7919)
	case "tracking parameters":
		guid, query = fmt.Sprintf("urn:uuid:%08d", p.number*7919), fmt.Sprintf("?utm_source=rss&utm_campaign=%d", n)
	}
	return feed.Entry{
		GUID: guid, URL: fmt.Sprintf("%s://%s/articles/%d%s", scheme, host, p.number, query), Title: title(p), Content: "text", Published: p.published,
	}
}

// An icon is kept as it was given, and a look that found none is remembered too.
func testIcons(t *testing.T, open Open) {
	t.Helper()
	store := open(t, "a")
	id := mustSave(t, store, Pull(0, Entries(1))).Feed.ID
	if _, err := store.Icon(t.Context(), id); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("before the first look: %v", err)
	}
	for _, icon := range []feed.Icon{
		{CheckedAt: begin()},
		{URL: "http://e/i.png", Type: "image/png", Data: []byte("x"), Width: 16, Height: 16, Rank: 2, FoundAt: begin(), CheckedAt: begin().Add(time.Hour)},
	} {
		if err := store.SaveIcon(t.Context(), id, icon); err != nil {
			t.Fatal(err)
		}
		got, err := store.Icon(t.Context(), id)
		if err != nil || got.URL != icon.URL || got.Type != icon.Type || string(got.Data) != string(icon.Data) || got.Width != icon.Width || got.Rank != icon.Rank ||
			!got.FoundAt.Equal(icon.FoundAt) || !got.CheckedAt.Equal(icon.CheckedAt) {
			t.Errorf("got %+v, %v, want %+v", got, err, icon)
		}
	}
}

// The mark of a feed of many authors is kept through pulls, and can be taken away.
func testCountOnly(t *testing.T, open Open) {
	t.Helper()
	store := open(t, "a")
	id := mustSave(t, store, Pull(0, Entries(1))).Feed.ID
	if err := store.CountOnly(t.Context(), id, "Ann Onym"); err != nil {
		t.Fatal(err)
	}
	if f := mustSave(t, store, Pull(1, Entries(2))).Feed; !f.MultiAuthor || f.FullName != "Ann Onym" || !f.Counts("ann  onym") || f.Counts("Bob") {
		t.Errorf("the feed is %+v", f)
	}
	if err := store.CountOnly(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if f, err := store.Find(t.Context(), feed.Ref{ID: id}); err != nil || f.MultiAuthor || !f.Counts("Bob") {
		t.Errorf("the feed is %+v, %v", f, err)
	}
	if err := store.CountOnly(t.Context(), id+7, "x"); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("a feed that is not there: %v", err)
	}
}

// The items of a document are those that are stored, those that were lost and those that were there twice.
func testLoss(t *testing.T, open Open) {
	t.Helper()
	store := open(t, "a")
	entries := Entries(29)
	pull := Pull(0, append(entries, entries[3]))
	pull.Document.Items, pull.Document.Lost, pull.Warnings = 31, 1, []string{"item 7 is lost"}
	saved := mustSave(t, store, pull)
	if saved.Items != 31 || saved.Lost != 1 || saved.Repeated != 1 || saved.NewEntries != 29 || len(saved.Warnings) != 2 {
		t.Errorf("%+v", saved)
	}
}
