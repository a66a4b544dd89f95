package identity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is the smallest store: it keeps what Match tells it to keep.
type memory struct {
	known      []identity.Known
	identities []identity.Key
}

// pull matches a document and applies the plan. It returns how many entries were new, and the number of each entry.
func (m *memory) pull(t testing.TB, entries []feed.Entry) (fresh int, ids []int64) {
	t.Helper()
	plan := identity.Match(entries, m.known)
	if len(plan.Decisions)+plan.Repeated != len(entries) {
		t.Fatalf("%d decisions and %d repeated for %d entries", len(plan.Decisions), plan.Repeated, len(entries))
	}
	seen := make(map[int64]bool)
	for _, d := range plan.Decisions {
		e := entries[d.Entry]
		id := d.Known
		if id == 0 {
			fresh++
			id = int64(len(m.known) + 1)
			if d.Identity == "" || slices.Contains(m.identities, d.Identity) {
				t.Fatalf("the identity %q is not one", d.Identity)
			}
			m.known = append(m.known, identity.Known{ID: id})
			m.identities = append(m.identities, d.Identity)
		}
		if seen[id] {
			t.Fatalf("two entries of one document became number %d", id)
		}
		seen[id] = true
		k := &m.known[id-1]
		k.GUID, k.Title, k.Date, k.ContentHash = strings.TrimSpace(e.GUID), e.Title, e.Published, e.ContentHash()
		k.HasURL = e.URL != "" || len(e.Enclosures) > 0
		add, drop := identity.Merge(k.Keys, m.identities[id-1], d.Keys)
		k.Keys = append(slices.DeleteFunc(k.Keys, func(key identity.Key) bool { return slices.Contains(drop, key) }), add...)
		ids = append(ids, id)
	}
	return fresh, ids
}

func day(n int) time.Time { return time.Date(2026, 3, n, 10, 0, 0, 0, time.UTC) }

// series is one entry for each number.
func series(from, to int, entry func(i int) feed.Entry) []feed.Entry {
	var out []feed.Entry
	for i := from; i <= to; i++ {
		out = append(out, entry(i))
	}
	return out
}

// Each story is two or more pulls of one feed and how many entries each may add: no duplicates, and nothing swallowed.
func TestStories(t *testing.T) {
	t.Parallel()
	s := fmt.Sprintf
	type pulls [][]feed.Entry
	for name, c := range map[string]struct {
		pulls pulls
		fresh []int
	}{
		"same again": {pulls{
			series(1, 9, func(i int) feed.Entry { return feed.Entry{GUID: s("%d", i), URL: s("http://a/%d", i)} }),
			series(1, 9, func(i int) feed.Entry { return feed.Entry{GUID: s("%d", i), URL: s("http://a/%d", i)} }),
		}, []int{9, 0}},
		"one guid for all, rolling": {pulls{
			series(1, 9, func(i int) feed.Entry { return feed.Entry{GUID: "x", URL: s("http://a/%d", i), Title: s("t%d", i)} }),
			series(2, 10, func(i int) feed.Entry { return feed.Entry{GUID: "x", URL: s("http://a/%d", i), Title: s("t%d", i)} }),
			series(10, 12, func(i int) feed.Entry { return feed.Entry{GUID: "x", URL: s("http://a/%d", i), Title: s("t%d", i)} }),
		}, []int{9, 1, 2}},
		"one guid and one url for all": {pulls{
			series(1, 5, func(i int) feed.Entry { return feed.Entry{GUID: "x", URL: "http://a/", Title: s("t%d", i)} }),
			series(2, 6, func(i int) feed.Entry { return feed.Entry{GUID: "x", URL: "http://a/", Title: s("t%d", i)} }),
		}, []int{5, 1}},
		"http to https in guid and url": {pulls{
			series(1, 5, func(i int) feed.Entry { return feed.Entry{GUID: s("http://a/?p=%d", i), URL: s("http://a/%d", i)} }),
			series(1, 5, func(i int) feed.Entry {
				return feed.Entry{GUID: s("https://www.a/?p=%d", i), URL: s("https://www.a/%d/", i)}
			}),
		}, []int{5, 0}},
		"moved host": {pulls{
			series(1, 5, func(i int) feed.Entry { return feed.Entry{GUID: s("http://a/?p=%d", i), Title: s("t%d", i)} }),
			series(2, 6, func(i int) feed.Entry { return feed.Entry{GUID: s("http://b/?p=%d", i), Title: s("t%d", i)} }),
		}, []int{5, 1}},
		"planet: same paths on other hosts": {pulls{
			series(1, 5, func(i int) feed.Entry {
				return feed.Entry{GUID: s("http://a/?p=%d", i), Title: s("a%d", i), Published: day(i)}
			}),
			series(1, 5, func(i int) feed.Entry {
				return feed.Entry{GUID: s("http://b/?p=%d", i), Title: s("b%d", i), Published: day(i + 9)}
			}),
		}, []int{5, 5}},
		"headline guid, edited": {pulls{
			{{GUID: "Old headline", URL: "http://a/1", Title: "Old headline"}, {GUID: "Other", URL: "http://a/2", Title: "Other"}},
			{{GUID: "New headline", URL: "http://a/1", Title: "New headline"}, {GUID: "Other", URL: "http://a/2", Title: "Other"}},
		}, []int{2, 0}},
		"guid changes, url and date stay": {pulls{
			{{GUID: "1", URL: "http://a/1", Title: "x", Published: day(1)}},
			{{GUID: "2", URL: "http://a/1", Title: "y", Published: day(1)}},
		}, []int{1, 0}},
		"one page for all, told apart by guid": {pulls{
			{{GUID: "1", URL: "http://a/changes", Title: "1.0", Published: day(1)}},
			{{GUID: "2", URL: "http://a/changes", Title: "1.1", Published: day(2)}},
			{{GUID: "3", URL: "http://a/changes", Title: "1.1", Published: day(3)}},
		}, []int{1, 1, 1}},
		"no guid, edited title": {pulls{
			{{URL: "http://a/1", Title: "x"}, {URL: "http://a/2", Title: "z"}},
			{{URL: "https://a/1?utm_source=rss", Title: "y"}, {URL: "http://a/2", Title: "z"}},
		}, []int{2, 0}},
		"no guid, all link home": {pulls{
			{{URL: "http://a/", Title: "x"}, {URL: "http://a/", Title: "y"}},
			{{URL: "http://a/", Title: "y"}, {URL: "http://a/", Title: "z"}},
			{{URL: "http://a/", Title: "w"}},
		}, []int{2, 1, 1}},
		"neither guid nor url": {pulls{
			{{Title: "x", Content: "1"}, {Title: "x", Content: "2"}},
			{{Title: "x", Content: "2"}, {Title: "x", Content: "3"}},
		}, []int{2, 1}},
		"date changes only": {pulls{
			{{Title: "x", Content: "1", Published: day(1)}},
			{{Title: "x", Content: "1", Published: day(2)}},
		}, []int{1, 0}},
		"everything moves, titles and dates stay": {pulls{
			series(1, 9, func(i int) feed.Entry {
				return feed.Entry{GUID: s("http://a/?p=%d", i), URL: s("http://a/%d", i), Title: s("t%d", i), Published: day(i)}
			}),
			series(1, 9, func(i int) feed.Entry {
				return feed.Entry{GUID: s("urn:%d", i*7), URL: s("http://b/posts/t%d", i), Title: s("t%d", i), Published: day(i)}
			}),
			series(1, 10, func(i int) feed.Entry {
				return feed.Entry{GUID: s("urn:%d", i*7), URL: s("http://b/posts/t%d", i), Title: s("t%d", i), Published: day(i)}
			}),
		}, []int{9, 0, 1}},
		"flips back and forth": {pulls{
			{{GUID: "http://a/x", Title: "t", Published: day(1)}}, {{GUID: "http://b/x", Title: "t", Published: day(1)}},
			{{GUID: "http://a/x", Title: "t", Published: day(1)}}, {{GUID: "http://b/x", Title: "u", Published: day(1)}},
		}, []int{1, 0, 0, 0}},
		"listed twice": {pulls{
			{{GUID: "1", URL: "http://a/1", Title: "x"}, {GUID: "1", URL: "http://a/1", Title: "x"}},
			{{GUID: "1", URL: "http://a/1", Title: "x"}},
		}, []int{1, 0}},
		"podcast without guid": {pulls{
			{{Title: "x", Enclosures: []feed.Enclosure{{URL: "http://a/1.mp3"}}}, {Title: "x", Enclosures: []feed.Enclosure{{URL: "http://a/2.mp3"}}}},
			{{Title: "y", Enclosures: []feed.Enclosure{{URL: "http://a/1.mp3"}}}, {Title: "x", Enclosures: []feed.Enclosure{{URL: "http://a/3.mp3"}}}},
		}, []int{2, 1}},
		"guid appears later": {pulls{
			{{URL: "http://a/1", Title: "x"}}, {{GUID: "1", URL: "http://a/1", Title: "x"}}, {{GUID: "1", URL: "http://a/other", Title: "x"}},
		}, []int{1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store memory
			for i, entries := range c.pulls {
				if fresh, _ := store.pull(t, entries); fresh != c.fresh[i] {
					t.Errorf("pull %d adds %d entries, want %d", i+1, fresh, c.fresh[i])
				}
			}
		})
	}
}

// Whatever the entries are, each becomes exactly one number of its own, and pulling the same again adds nothing.
func FuzzMatch(f *testing.F) {
	f.Add("1|http://a/1|x|c\n1|http://a/1|y|c\n|||", "1|http://a/1|x|d")
	f.Add("|http://a/|x|\n|http://a/|x|d", "g||t|")
	f.Add("0|0||\n0|0|| 0", "")
	f.Fuzz(func(t *testing.T, first, second string) {
		var store memory
		for _, text := range []string{first, second, first, second} {
			store.pull(t, entriesOf(text))
		}
		if fresh, _ := store.pull(t, entriesOf(second)); fresh != 0 {
			t.Fatalf("the same document again adds %d entries", fresh)
		}
	})
}

func entriesOf(text string) []feed.Entry {
	var out []feed.Entry
	for line := range strings.SplitSeq(text, "\n") {
		parts := append(strings.Split(line, "|"), "", "", "", "")
		out = append(out, feed.Entry{GUID: parts[0], URL: parts[1], Title: parts[2], Content: parts[3]})
	}
	return out
}
