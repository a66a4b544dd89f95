// Package storetest is the suite that every feed store has to pass.
//
// It owns the promises of feedstore.Store as tests. It opens no store itself: an implementation's test gives it a function that
// does, and may be called several times for the same place, as several processes would.
package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
)

// Open opens the store at a place, which is empty the first time. It closes it at the end of the test.
type Open func(t testing.TB, place string) feedstore.Store

const address = "http://example.com/feed"

// begin is where the suite's time begins.
func begin() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Open){
		"Find": testFind, "SaveAndRead": testSaveAndRead, "Edit": testEdit, "Dates": testDates, "Failure": testFailure, "Gone": testGone,
		"Move": testMove, "MoveTaken": testMoveTaken, "Stale": testStale, "LogIsTrimmed": testLogIsTrimmed, "Reopen": testReopen,
		"Concurrent": testConcurrent, "Identity": testIdentity, "FiftyPulls": testFiftyPulls, "Icons": testIcons,
		"CountOnly": testCountOnly, "Loss": testLoss,
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
			Content: "text", Published: begin().Add(-time.Duration(i) * time.Hour),
		}
	}
	return out
}

// Pull is a good pull, so many minutes after the start of the suite's time.
func Pull(minutes int, entries []feed.Entry) *feed.Pull {
	return &feed.Pull{
		Feed: feed.Ref{URL: address}, At: begin().Add(time.Duration(minutes) * time.Minute), Took: 1500 * time.Millisecond, Answer: feed.Read, HTTPStatus: 200,
		Unconditional: true, ETag: `"e"`, LastModified: "lm", BodyHash: feed.BodyHash([]byte(fmt.Sprint(minutes))),
		Document: &feed.Document{Type: "rss 2.0", Title: "T", SiteURL: "http://example.com/", Entries: entries, Items: len(entries)},
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
