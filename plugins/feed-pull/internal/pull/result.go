package pull

import (
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
)

// Payload is what a task of kind feed-pull asks for. Exactly one of URL and FeedID is set.
type Payload struct {
	URL    string `json:"url,omitempty"`
	FeedID int64  `json:"feed_id,omitempty"`
	// Force fetches without conditions and reads the body even when it has not changed.
	Force bool `json:"force,omitempty"`
}

// Result is what a pull that did not fail comes to.
type Result struct {
	FeedID         int64       `json:"feed_id"`
	Status         feed.Status `json:"status"`
	NewEntries     int         `json:"new_entries"`
	UpdatedEntries int         `json:"updated_entries"`
	// Entries is how many entries of the feed are stored.
	Entries int `json:"entries"`
	// Items is how many items the document had; Lost of them could not be read, as the warnings say.
	Items    int      `json:"items"`
	Lost     int      `json:"lost"`
	Warnings []string `json:"warnings"`
	// NextFetch is when the feed is due again; null for one that is gone.
	NextFetch *time.Time `json:"next_fetch"`
	Title     string     `json:"title"`
	// URL is the feed's address in the store, FinalURL the one that answered after all redirects.
	URL      string `json:"url"`
	FinalURL string `json:"final_url"`
}

func resultOf(saved *feed.Saved, response *fetch.Response) *Result {
	out := &Result{
		FeedID: saved.Feed.ID, Status: saved.Status, NewEntries: saved.NewEntries, UpdatedEntries: saved.UpdatedEntries,
		Entries: saved.Entries, Items: saved.Items, Lost: saved.Lost, Warnings: saved.Warnings, Title: saved.Feed.Title, URL: saved.Feed.URL, FinalURL: response.URL,
	}
	if out.Warnings == nil {
		out.Warnings = []string{} // a list in JSON, never null
	}
	if next := saved.Feed.NextFetch; !next.IsZero() {
		next = next.UTC().Truncate(time.Second)
		out.NextFetch = &next
	}
	return out
}
