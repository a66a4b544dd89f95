package feed_test

import (
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// An icon is kept until a better one is proven: a look that finds none changes nothing, one from a worse place has to wait for
// weeks, one from as good a place replaces it.
func TestIconAfter(t *testing.T) {
	t.Parallel()
	week := feed.IconEvery
	old := feed.Icon{URL: "old", Data: []byte("old"), Rank: 2, FoundAt: start, CheckedAt: start}
	for name, c := range map[string]struct {
		old, next feed.Icon
		after     time.Duration
		want      string
	}{
		"first":                {feed.Icon{}, feed.Icon{URL: "new", Data: []byte("new"), Rank: 4}, 0, "new"},
		"none":                 {feed.Icon{}, feed.Icon{}, 0, ""},
		"gone":                 {old, feed.Icon{}, week, "old"},
		"better":               {old, feed.Icon{URL: "new", Data: []byte("new"), Rank: 1}, week, "new"},
		"as good":              {old, feed.Icon{URL: "new", Data: []byte("new"), Rank: 2}, week, "new"},
		"worse, soon":          {old, feed.Icon{URL: "new", Data: []byte("new"), Rank: 4}, week, "old"},
		"worse, after a month": {old, feed.Icon{URL: "new", Data: []byte("new"), Rank: 4}, 5 * week, "new"},
	} {
		now := start.Add(c.after)
		got := c.old.After(c.next, now)
		if got.URL != c.want || !got.CheckedAt.Equal(now) || got.Due(now.Add(week-1)) || !got.Due(now.Add(week)) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
	if first := (feed.Icon{}); !first.Due(start) {
		t.Error("an icon that was never looked for is not due")
	}
}

// A feed of many authors counts the entries of one of them, however the name is spelt and whoever else wrote the entry.
func TestCounts(t *testing.T) {
	t.Parallel()
	one, many := feed.Feed{FullName: "Ann Onym"}, feed.Feed{MultiAuthor: true, FullName: "Ann Onym"}
	for author, want := range map[string]bool{"Ann Onym": true, " ann  ONYM ": true, "Bob, Ann Onym": true, "Bob": false, "": false, "Ann": false, "Ann Onymous": false} {
		if got := many.Counts(author); got != want || !one.Counts(author) {
			t.Errorf("%q: %v, want %v", author, got, want)
		}
	}
	if unnamed := (feed.Feed{MultiAuthor: true}); !unnamed.Counts("Bob") {
		t.Error("a feed without a full name counts nobody")
	}
}
