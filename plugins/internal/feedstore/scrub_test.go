package feedstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore/storetest"
)

// What was stored before HTML was sanitised is made safe when the store is opened; the next pull finds each entry again and takes
// none of them for edited, not even those that have neither guid nor address.
func TestOldEntriesAreSanitised(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feeds.db")
	const dirty, clean = `<p onclick="x()">a<script>x()</script></p><img src="i.png">`, `<p>a</p><img src="http://example.com/p/i.png"/>`
	entries := storetest.Entries(450) // more than is read at once
	for i := range entries {
		entries[i].Content = dirty
	}
	entries[1].GUID, entries[1].URL, entries[1].Content = "", "", `<b onclick="x()">b</b>`
	entries[2].URL = "javascript:x()"
	old := open(t, "sqlite:"+path)
	id, err := old.Save(t.Context(), storetest.Pull(0, entries), feed.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "DELETE FROM goose_db_version WHERE version_id >= 3"); err != nil {
		t.Fatal(err)
	}
	// A process that was killed in the middle of it leaves the rest to the next; entries up to 7 count as done.
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = 7"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE entries SET content = 'x()' WHERE id = 7"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, "sqlite:"+path)
	got, err := store.Entries(t.Context(), id.Feed.ID, 1000)
	if err != nil || len(got) != len(entries) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := range got {
		if strings.Contains(got[i].Content+got[i].URL, "x()") != (got[i].ID <= 7) || got[i].Revision != 1 {
			t.Errorf("entry %d: %q at %q, revision %d", got[i].ID, got[i].Content, got[i].URL, got[i].Revision)
		}
	}
	for i := range entries {
		entries[i].Content = clean
	}
	entries[1].Content, entries[2].URL = "<b>b</b>", ""
	entries[2].Content = strings.Replace(clean, "/p/i.png", "/i.png", 1) // relative to the site
	again, err := store.Save(t.Context(), storetest.Pull(1, entries), feed.DefaultPolicy())
	if err != nil || again.NewEntries != 0 || again.UpdatedEntries != 7 {
		t.Errorf("the next pull brings %d new and %d updated entries (%v)", again.NewEntries, again.UpdatedEntries, err)
	}
}
