package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

func failed(minutes int) *feed.Pull {
	pull := Pull(minutes, nil)
	pull.Answer, pull.Document, pull.ErrorKind, pull.ErrorText, pull.HTTPStatus = feed.Failed, nil, "http_status", "answers 500", 500
	return pull
}

// A failure is a penalty and a row of the log, also for a feed that was never read; entries stay, and a success clears it.
func testFailure(t *testing.T, open Open) {
	t.Helper()
	store := open(t, "a")
	first := mustSave(t, store, failed(0))
	want(t, first, feed.StatusFailed, 0, 0, 0)
	second := mustSave(t, store, failed(40)).Feed
	if second.ID != first.Feed.ID || second.Failures != 2 || !second.PenaltyUntil.Equal(begin().Add(100*time.Minute)) || second.ErrorText != "answers 500" {
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
	t.Helper()
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
	t.Helper()
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
	t.Helper()
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
	t.Helper()
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
	t.Helper()
	store := open(t, "a")
	var id int64
	for i := range 230 {
		id = mustSave(t, store, failed(i)).Feed.ID
	}
	rows, err := store.Log(t.Context(), id, 1000)
	if err != nil || len(rows) > 220 || len(rows) < 100 || !rows[0].At.Equal(begin().Add(229*time.Minute)) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// What one process has written, another reads.
func testReopen(t *testing.T, open Open) {
	t.Helper()
	mustSave(t, open(t, "a"), Pull(0, Entries(2)))
	again := open(t, "a")
	want(t, mustSave(t, again, Pull(1, Entries(3))), feed.StatusUpdated, 1, 0, 3)
	if _, err := open(t, "b").Find(t.Context(), feed.Ref{URL: address}); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("another place has the feed as well: %v", err)
	}
}

// Ten that pull the same feed at once, through stores of their own that they open at once, make one feed and no duplicate.
func testConcurrent(t *testing.T, open Open) {
	t.Helper()
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
	t.Helper()
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
