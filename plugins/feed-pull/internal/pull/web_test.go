package pull_test

import (
	"database/sql"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/feed-pull/internal/pull"
	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/protocol/fault"
)

// exec changes the store behind the worker's back, as time would.
func (b *bench) exec(query string, args ...any) {
	b.t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(b.store, "sqlite:"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(b.t.Context(), query, args...); err != nil {
		b.t.Fatal(err)
	}
}

// A server that answers 304 whatever has changed is asked once a day without conditions, and only once.
func TestLyingNotModified(t *testing.T) {
	t.Parallel()
	var posts, unconditional atomic.Int32
	posts.Store(1)
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Fri, 01 Feb 2041 00:00:00 GMT")
		if r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		unconditional.Add(1)
		if posts.Load() == 1 {
			_, _ = w.Write([]byte(rss("T", 1)))
			return
		}
		_, _ = w.Write([]byte(rss("T", 2, 1)))
	}, nil)
	id := b.pull("/f", feed.StatusNew, 1, 0).FeedID
	posts.Store(2)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	b.exec("UPDATE feeds SET full_at = ? WHERE id = ?", time.Now().Add(-23*time.Hour).UnixMilli(), id)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	b.exec("UPDATE feeds SET full_at = ? WHERE id = ?", time.Now().Add(-25*time.Hour).UnixMilli(), id)
	b.pull("/f", feed.StatusUpdated, 1, 0)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	if n := unconditional.Load(); n != 2 {
		t.Errorf("asked %d times without conditions, want 2", n)
	}
}

// A feed gets a new address only when every hop says that it is permanent, when that has held for the time that is set, and when a
// feed answers there.
func TestRedirectChains(t *testing.T) {
	t.Parallel()
	hops := map[string]struct {
		status int
		to     string
	}{
		"/308": {308, "/new"}, "/301-301": {301, "/308b"}, "/308b": {308, "/new2"}, "/302-301": {302, "/301c"}, "/301c": {301, "/new3"},
		"/301-302": {301, "/302d"}, "/302d": {302, "/new4"}, "/307": {307, "/new5"}, "/303": {303, "/new6"}, "/301-page": {301, "/page"},
		"/301-in": {301, "http://169.254.169.254/feed"}, "/301-file": {301, "file:///etc/passwd"}, "/loop": {301, "/loop"},
	}
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		if hop, ok := hops[r.URL.Path]; ok {
			w.Header().Set("Location", hop.to)
			w.WriteHeader(hop.status)
			return
		}
		if r.URL.Path == "/page" {
			_, _ = w.Write([]byte("<!doctype html><title>We have moved</title>"))
			return
		}
		_, _ = w.Write([]byte(rss("T", 1)))
	}, map[string]any{"move_after": "2d"})
	for path, to := range map[string]string{
		"/308": "/new", "/301-301": "/new2", "/302-301": "", "/301-302": "", "/307": "", "/303": "",
	} {
		id := b.pull(path, feed.StatusNew, 1, 0).FeedID
		if out, f := b.run(pull.Payload{FeedID: id}); f != nil || out.URL != b.site.URL+path {
			t.Errorf("%s moved at once: %+v, %v", path, out, f)
		}
		b.exec("UPDATE feeds SET moved_since = ? WHERE id = ? AND moved_since > 0", time.Now().Add(-49*time.Hour).UnixMilli(), id)
		out, f := b.run(pull.Payload{FeedID: id})
		want := b.site.URL + path
		if to != "" {
			want = b.site.URL + to
		}
		if f != nil || out.URL != want || (out.Status == feed.StatusMoved) != (to != "") {
			t.Errorf("%s after two days: %+v, %v; want %s", path, out, f, want)
		}
	}
	b.fail("/301-page", fault.WrongContent, "We have moved")
	b.fail("/loop", fault.Unreachable, "more than 10 times")
	b.fail("/301-in", fault.Refused, "169.254.169.254")
	b.fail("/301-file", fault.Refused, "file")
	if f, err := b.find("/301-page"); err != nil || f.MovedTo != "" || f.URL != b.site.URL+"/301-page" {
		t.Errorf("a redirect to a page left its trace: %+v, %v", f, err)
	}
}

// The icon of a feed is found after its first pull, looked for again only after a week, and kept when it is not found then.
func TestIcon(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>`
	var looks atomic.Int32
	var gone atomic.Bool
	var site atomic.Pointer[string]
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/f":
			_, _ = w.Write([]byte(strings.ReplaceAll(rss("T", 1), "http://example.com/", *site.Load()+"/blog/")))
		case "/blog/":
			looks.Add(1)
			if !gone.Load() {
				_, _ = w.Write([]byte(`<link rel=icon href=i.svg>`))
			}
		case "/blog/i.svg":
			_, _ = w.Write([]byte(svg))
		default:
			http.NotFound(w, r)
		}
	}, map[string]any{"icons": true})
	site.Store(&b.site.URL)
	id := b.pull("/f", feed.StatusNew, 1, 0).FeedID
	check := func(n int32) {
		t.Helper()
		got, err := b.open().Icon(t.Context(), id)
		if err != nil || string(got.Data) != svg || got.Type != "image/svg+xml" || got.URL != b.site.URL+"/blog/i.svg" || looks.Load() != n {
			t.Errorf("after %d looks, want %d: %+v, %v", looks.Load(), n, got, err)
		}
	}
	check(1)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	check(1)
	gone.Store(true)
	b.exec("UPDATE icons SET checked_at = ?", time.Now().Add(-8*24*time.Hour).UnixMilli())
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	check(2)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	check(2)
}
