// Package storetest is the suite that every feed store has to pass.
//
// It owns the promises of feedstore.Store as tests. It opens no store itself: an implementation's test gives it a function that
// does, and may be called several times for the same place, as several processes would.
package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
)

// Open opens the store at a place, which is empty the first time. It closes it at the end of the test.
type Open func(t testing.TB, place string) feedstore.Store

const address = "http://example.com/feed"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Open){
		"Find": testFind, "SaveAndRead": testSaveAndRead, "Edit": testEdit, "Dates": testDates, "Failure": testFailure, "Gone": testGone,
		"Move": testMove, "MoveTaken": testMoveTaken, "Stale": testStale, "LogIsTrimmed": testLogIsTrimmed, "Reopen": testReopen,
		"Concurrent": testConcurrent, "Identity": testIdentity,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// Entries makes n entries that any store tells apart.
func Entries(n int) []feed.Entry {
	out := make([]feed.Entry, n)
	for i := range out {
		out[i] = feed.Entry{
			GUID: fmt.Sprintf("guid-%d", i), URL: fmt.Sprintf("http://example.com/p/%d", i), Title: fmt.Sprintf("Post %d", i),
			Content: "text", Published: start.Add(-time.Duration(i) * time.Hour),
		}
	}
	return out
}

// Pull is a good pull, so many minutes after the start of the suite's time.
func Pull(minutes int, entries []feed.Entry) *feed.Pull {
	return &feed.Pull{
		Feed: feed.Ref{URL: address}, At: start.Add(time.Duration(minutes) * time.Minute), Took: 1500 * time.Millisecond, Answer: feed.Read, HTTPStatus: 200,
		Unconditional: true, ETag: `"e"`, LastModified: "lm", BodyHash: feed.BodyHash([]byte(fmt.Sprint(minutes))),
		Document: &feed.Document{Type: "rss 2.0", Title: "T", SiteURL: "http://example.com/", Entries: entries},
	}
}

func mustSave(t testing.TB, store feedstore.Store, pull *feed.Pull) feed.Saved {
	t.Helper()
	saved, err := store.Save(t.Context(), pull, feed.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func want(t testing.TB, saved feed.Saved, status feed.Status, fresh, edited, all int) {
	t.Helper()
	if saved.Status != status || saved.NewEntries != fresh || saved.UpdatedEntries != edited || saved.Entries != all {
		t.Errorf("%s with %d new, %d updated of %d; want %s, %d, %d of %d", saved.Status, saved.NewEntries, saved.UpdatedEntries, saved.Entries,
			status, fresh, edited, all)
	}
}

// A feed that is not there is ErrNotFound, by number and by address, and saving to a number does not create one.
func testFind(t *testing.T, open Open) {
	store := open(t, "a")
	for _, ref := range []feed.Ref{{ID: 7}, {URL: address}} {
		if _, err := store.Find(t.Context(), ref); !errors.Is(err, feed.ErrNotFound) {
			t.Errorf("finding %v: %v", ref, err)
		}
	}
	pull := Pull(0, nil)
	pull.Feed = feed.Ref{ID: 7}
	if _, err := store.Save(t.Context(), pull, feed.DefaultPolicy()); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("saving to feed 7: %v", err)
	}
	saved := mustSave(t, store, Pull(0, Entries(1)))
	for _, ref := range []feed.Ref{{ID: saved.Feed.ID}, {URL: address}} {
		if f, err := store.Find(t.Context(), ref); err != nil || f != saved.Feed {
			t.Errorf("finding %v: %+v, %v; saved was %+v", ref, f, err, saved.Feed)
		}
	}
}

// Everything that a pull says can be read back, and the same again adds nothing.
func testSaveAndRead(t *testing.T, open Open) {
	store := open(t, "a")
	entries := Entries(3)
	entries[0].Author, entries[0].Summary, entries[0].Categories = "Ann", "short", []string{"a", "b"}
	entries[0].Enclosures = []feed.Enclosure{{URL: "http://e/x.mp3", Type: "audio/mpeg", Length: "7"}}
	entries[0].Extensions = []byte(`{"dc":{}}`)
	saved := mustSave(t, store, Pull(0, entries))
	want(t, saved, feed.StatusNew, 3, 0, 3)
	f := saved.Feed
	if f.ETag != `"e"` || f.LastModified != "lm" || f.BodyHash != feed.BodyHash([]byte("0")) || f.Title != "T" || !f.CheckedAt.Equal(start) ||
		!f.FullAt.Equal(start) || !f.NextFetch.Equal(start.Add(time.Hour)) {
		t.Errorf("the feed is %+v", f)
	}
	got, err := store.Entries(t.Context(), f.ID, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	e := got[0]
	if e.GUID != "guid-0" || e.Author != "Ann" || e.Summary != "short" || len(e.Categories) != 2 || len(e.Enclosures) != 1 ||
		e.Enclosures[0].Length != "7" || string(e.Extensions) != `{"dc":{}}` || !e.Date.Equal(start) || !e.FirstSeen.Equal(start) || e.Revision != 1 || !e.EditedAt.IsZero() {
		t.Errorf("the entry is %+v", e)
	}
	want(t, mustSave(t, store, Pull(1, entries)), feed.StatusUnchanged, 0, 0, 3)
	same := Pull(2, nil)
	same.Answer, same.Document = feed.NotModified, nil
	want(t, mustSave(t, store, same), feed.StatusUnchanged, 0, 0, 3)
	rows, err := store.Log(t.Context(), f.ID, 10)
	if err != nil || len(rows) != 3 || rows[2].Status != feed.StatusNew || rows[2].NewEntries != 3 || rows[2].Took != 1500*time.Millisecond || rows[2].HTTPStatus != 200 {
		t.Errorf("the log is %+v, %v", rows, err)
	}
}

// An edited entry is updated and marked so; one whose address flips is not.
func testEdit(t *testing.T, open Open) {
	store := open(t, "a")
	entries := Entries(2)
	id := mustSave(t, store, Pull(0, entries)).Feed.ID
	entries[0].Title, entries[1].URL = "Edited", "https://www.example.com/p/1"
	want(t, mustSave(t, store, Pull(5, entries)), feed.StatusUpdated, 0, 1, 2)
	got, err := store.Entries(t.Context(), id, 10)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if e := got[0]; e.Title != "Edited" || e.Revision != 2 || !e.EditedAt.Equal(start.Add(5*time.Minute)) || !e.Date.Equal(start) {
		t.Errorf("the edited entry is %+v", e)
	}
	if e := got[1]; e.URL != "https://www.example.com/p/1" || e.Revision != 1 || !e.EditedAt.IsZero() {
		t.Errorf("the other entry is %+v", e)
	}
}

// A missing or future date is the time of first sight, and stays so however often the entry comes again.
func testDates(t *testing.T, open Open) {
	store := open(t, "a")
	entries := Entries(2)
	entries[0].Published, entries[1].Published = time.Time{}, start.Add(100*time.Hour)
	id := mustSave(t, store, Pull(0, entries)).Feed.ID
	entries[0].Content, entries[1].Content = "edited", "edited"
	want(t, mustSave(t, store, Pull(60, entries)), feed.StatusUpdated, 0, 2, 2)
	got, err := store.Entries(t.Context(), id, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		if !e.Date.Equal(start) || !e.FirstSeen.Equal(start) {
			t.Errorf("%s has the date %v", e.Title, e.Date)
		}
	}
}

func failed(minutes int) *feed.Pull {
	pull := Pull(minutes, nil)
	pull.Answer, pull.Document, pull.ErrorKind, pull.ErrorText, pull.HTTPStatus = feed.Failed, nil, "http_status", "answers 500", 500
	return pull
}

// A failure is a penalty and a row of the log, also for a feed that was never read; entries stay, and a success clears it.
func testFailure(t *testing.T, open Open) {
	store := open(t, "a")
	first := mustSave(t, store, failed(0))
	want(t, first, feed.StatusFailed, 0, 0, 0)
	second := mustSave(t, store, failed(40)).Feed
	if second.ID != first.Feed.ID || second.Failures != 2 || !second.PenaltyUntil.Equal(start.Add(100*time.Minute)) || second.ErrorText != "answers 500" {
		t.Errorf("after two failures: %+v", second)
	}
	good := mustSave(t, store, Pull(110, Entries(2)))
	want(t, good, feed.StatusNew, 2, 0, 2)
	if f := good.Feed; f.Failures != 0 || !f.PenaltyUntil.IsZero() || f.ErrorKind != "" {
		t.Errorf("after a success: %+v", f)
	}
	want(t, mustSave(t, store, failed(200)), feed.StatusFailed, 0, 0, 2)
	rows, err := store.Log(t.Context(), first.Feed.ID, 1)
	if err != nil || len(rows) != 1 || rows[0].Status != feed.StatusFailed || rows[0].ErrorKind != "http_status" || rows[0].Message != "answers 500" || rows[0].HTTPStatus != 500 {
		t.Errorf("the log is %+v, %v", rows, err)
	}
}

// A feed that is gone keeps its history and is not due.
func testGone(t *testing.T, open Open) {
	store := open(t, "a")
	mustSave(t, store, Pull(0, Entries(2)))
	pull := failed(1)
	pull.Answer, pull.HTTPStatus = feed.GoneAnswer, 410
	saved := mustSave(t, store, pull)
	want(t, saved, feed.StatusGone, 0, 0, 2)
	if saved.Feed.State != feed.Gone || !saved.Feed.NextFetch.IsZero() {
		t.Errorf("the feed is %+v", saved.Feed)
	}
}

// A feed that has moved is found at both addresses and keeps its number and entries.
func testMove(t *testing.T, open Open) {
	store := open(t, "a")
	const elsewhere = "https://example.org/feed"
	id := mustSave(t, store, Pull(0, Entries(2))).Feed.ID
	pull := Pull(1, Entries(2))
	pull.MovedTo = elsewhere
	want(t, mustSave(t, store, pull), feed.StatusUnchanged, 0, 0, 2)
	pull = Pull(1+3*24*60, Entries(2))
	pull.MovedTo = elsewhere
	saved := mustSave(t, store, pull)
	want(t, saved, feed.StatusMoved, 0, 0, 2)
	for _, url := range []string{address, elsewhere} {
		if f, err := store.Find(t.Context(), feed.Ref{URL: url}); err != nil || f.ID != id || f.URL != elsewhere {
			t.Errorf("at %s: %+v, %v", url, f, err)
		}
	}
}

// A feed does not move onto another one; it says so instead.
func testMoveTaken(t *testing.T, open Open) {
	store := open(t, "a")
	const elsewhere = "https://example.org/feed"
	other := Pull(0, Entries(1))
	other.Feed.URL = elsewhere
	mustSave(t, store, other)
	var saved feed.Saved
	for _, minutes := range []int{1, 4 * 24 * 60} {
		pull := Pull(minutes, Entries(1))
		pull.MovedTo = elsewhere
		saved = mustSave(t, store, pull)
	}
	if saved.Feed.URL != address || len(saved.Warnings) != 1 {
		t.Errorf("moved onto another feed: %+v", saved)
	}
}

// A pull that began before one that is stored brings its entries and changes nothing else.
func testStale(t *testing.T, open Open) {
	store := open(t, "a")
	newer := Entries(3)
	newer[1].Title = "Edited"
	now := mustSave(t, store, Pull(10, newer)).Feed
	old := Pull(5, Entries(4))
	old.ETag = "old"
	saved := mustSave(t, store, old)
	want(t, saved, feed.StatusUpdated, 1, 0, 4)
	if saved.Feed != now {
		t.Errorf("the feed was changed from %+v to %+v", now, saved.Feed)
	}
}

// The status log does not grow for ever.
func testLogIsTrimmed(t *testing.T, open Open) {
	store := open(t, "a")
	var id int64
	for i := range 230 {
		id = mustSave(t, store, failed(i)).Feed.ID
	}
	rows, err := store.Log(t.Context(), id, 1000)
	if err != nil || len(rows) > 220 || len(rows) < 100 || !rows[0].At.Equal(start.Add(229*time.Minute)) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// What one process has written, another reads.
func testReopen(t *testing.T, open Open) {
	mustSave(t, open(t, "a"), Pull(0, Entries(2)))
	again := open(t, "a")
	want(t, mustSave(t, again, Pull(1, Entries(3))), feed.StatusUpdated, 1, 0, 3)
	if _, err := open(t, "b").Find(t.Context(), feed.Ref{URL: address}); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("another place has the feed as well: %v", err)
	}
}

// Ten that pull the same feed at once, through stores of their own that they open at once, make one feed and no duplicate.
func testConcurrent(t *testing.T, open Open) {
	const workers, rounds, entries = 10, 3, 40
	var wg sync.WaitGroup
	fresh := make([]int, workers)
	for w := range workers {
		wg.Go(func() {
			store := open(t, "a")
			for round := range rounds {
				pull := Pull(round, Entries(entries))
				pull.At = pull.At.Add(time.Duration(w) * time.Millisecond)
				saved, err := store.Save(t.Context(), pull, feed.DefaultPolicy())
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
				fresh[w] += saved.NewEntries
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range fresh {
		sum += n
	}
	store := open(t, "a")
	f, err := store.Find(t.Context(), feed.Ref{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.Entries(t.Context(), f.ID, 1000)
	if err != nil || len(got) != entries || sum != entries {
		t.Errorf("%d entries stored, %d reported as new, want %d (%v)", len(got), sum, entries, err)
	}
}

// The rules of identity hold across pulls: repeated guids, flips of scheme and host, and a site that changes every address.
func testIdentity(t *testing.T, open Open) {
	store := open(t, "a")
	pulls := []struct {
		change        func(i int, e *feed.Entry)
		fresh, edited int
	}{
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL = fmt.Sprintf("http://a/?p=%d", i), fmt.Sprintf("http://a/%d", i)
		}, 9, 0},
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL = fmt.Sprintf("https://a/?p=%d", i), fmt.Sprintf("https://a/%d", i)
		}, 0, 0},
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL = fmt.Sprintf("https://b/?p=%d", i), fmt.Sprintf("https://b/%d", i)
		}, 0, 0},
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL = fmt.Sprintf("urn:x:%d", i*3), fmt.Sprintf("https://b/posts/x%d", i)
		}, 0, 0},
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL, e.Title = "one for all", fmt.Sprintf("https://b/posts/x%d", i), "New"
		}, 0, 9},
		{func(i int, e *feed.Entry) {
			e.GUID, e.URL, e.Title = "one for all", fmt.Sprintf("https://b/posts/x%d", i), "New"
		}, 0, 0},
	}
	for n, p := range pulls {
		entries := Entries(9)
		for i := range entries {
			p.change(i, &entries[i])
		}
		saved := mustSave(t, store, Pull(n, entries))
		if saved.NewEntries != p.fresh || saved.UpdatedEntries != p.edited || saved.Entries != 9 {
			t.Errorf("pull %d: %d new and %d updated of %d, want %d and %d of 9", n, saved.NewEntries, saved.UpdatedEntries, saved.Entries, p.fresh, p.edited)
		}
	}
}
