package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// A feed that is not there is ErrNotFound, by number and by address, and saving to a number does not create one.
func testFind(t *testing.T, open Open) {
	t.Helper()
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
	t.Helper()
	store := open(t, "a")
	entries := Entries(3)
	entries[0].Author, entries[0].Summary, entries[0].Categories = "Ann", "short", []string{"a", "b"}
	entries[0].Enclosures = []feed.Enclosure{{URL: "http://e/x.mp3", Type: "audio/mpeg", Length: "7"}}
	entries[0].Extensions = []byte(`{"dc":{}}`)
	saved := mustSave(t, store, Pull(0, entries))
	want(t, saved, feed.StatusNew, 3, 0, 3)
	f := saved.Feed
	if f.ETag != `"e"` || f.LastModified != "lm" || f.BodyHash != feed.BodyHash([]byte("0")) || f.Title != "T" || !f.CheckedAt.Equal(begin()) ||
		!f.FullAt.Equal(begin()) || !f.NextFetch.Equal(begin().Add(time.Hour)) {
		t.Errorf("the feed is %+v", f)
	}
	got, err := store.Entries(t.Context(), f.ID, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	e := got[0]
	if e.GUID != "guid-0" || e.Author != "Ann" || e.Summary != "short" || len(e.Categories) != 2 || len(e.Enclosures) != 1 ||
		e.Enclosures[0].Length != "7" || string(e.Extensions) != `{"dc":{}}` || !e.Date.Equal(begin()) || !e.FirstSeen.Equal(begin()) || e.Revision != 1 || !e.EditedAt.IsZero() {
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
	t.Helper()
	store := open(t, "a")
	entries := Entries(2)
	id := mustSave(t, store, Pull(0, entries)).Feed.ID
	entries[0].Title, entries[1].URL = "Edited", "https://www.example.com/p/1"
	want(t, mustSave(t, store, Pull(5, entries)), feed.StatusUpdated, 0, 1, 2)
	got, err := store.Entries(t.Context(), id, 10)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if e := got[0]; e.Title != "Edited" || e.Revision != 2 || !e.EditedAt.Equal(begin().Add(5*time.Minute)) || !e.Date.Equal(begin()) {
		t.Errorf("the edited entry is %+v", e)
	}
	if e := got[1]; e.URL != "https://www.example.com/p/1" || e.Revision != 1 || !e.EditedAt.IsZero() {
		t.Errorf("the other entry is %+v", e)
	}
}

// A missing or future date is the time of first sight, and stays so however often the entry comes again.
func testDates(t *testing.T, open Open) {
	t.Helper()
	store := open(t, "a")
	entries := Entries(2)
	entries[0].Published, entries[1].Published = time.Time{}, begin().Add(100*time.Hour)
	id := mustSave(t, store, Pull(0, entries)).Feed.ID
	entries[0].Content, entries[1].Content = "edited", "edited"
	want(t, mustSave(t, store, Pull(60, entries)), feed.StatusUpdated, 0, 2, 2)
	got, err := store.Entries(t.Context(), id, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		if !e.Date.Equal(begin()) || !e.FirstSeen.Equal(begin()) {
			t.Errorf("%s has the date %v", e.Title, e.Date)
		}
	}
}
