package pull_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/feed-pull/internal/pull"
	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rss makes a feed with the given items, newest first.
func rss(title string, posts ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>%s</title><link>http://example.com/</link>`, title)
	for _, i := range posts {
		fmt.Fprintf(&b, "<item><title>Post %d</title><guid>g%d</guid><link>/p/%d</link></item>", i, i, i)
	}
	return b.String() + "</channel></rss>"
}

// bench is one worker with its store and a site that it may pull from.
type bench struct {
	t      *testing.T
	worker *sdktest.Worker
	site   *httptest.Server
	store  string
}

func start(t *testing.T, handler http.HandlerFunc, extra map[string]any) *bench {
	t.Helper()
	b := &bench{t: t, site: httptest.NewServer(handler), store: "sqlite:" + filepath.Join(t.TempDir(), "feeds.db")}
	t.Cleanup(b.site.Close)
	options := map[string]any{"store": b.store, "allow_networks": []string{"127.0.0.1/32"}, "icons": false}
	for name, value := range extra {
		options[name] = value
	}
	b.worker = sdktest.Start(t, pull.Program(), sdktest.Options(t, options))
	return b
}

func (b *bench) run(payload any, options ...sdktest.TaskOption) (pull.Result, *fault.Fault) {
	b.t.Helper()
	var out pull.Result
	raw, err := b.worker.Run(b.t.Context(), payload, options...)
	if err != nil {
		var f *fault.Fault
		if !errors.As(err, &f) {
			b.t.Fatalf("%v is not a fault", err)
		}
		return out, f
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		b.t.Fatal(err)
	}
	return out, nil
}

// pull pulls a page of the site and expects a result.
func (b *bench) pull(path string, status feed.Status, fresh, updated int) pull.Result {
	b.t.Helper()
	out, f := b.run(pull.Payload{URL: b.site.URL + path})
	if f != nil {
		b.t.Fatalf("%s: %v", path, f)
	}
	if out.Status != status || out.NewEntries != fresh || out.UpdatedEntries != updated {
		b.t.Errorf("%s: %s with %d new and %d updated, want %s, %d and %d (%v)", path, out.Status, out.NewEntries, out.UpdatedEntries,
			status, fresh, updated, out.Warnings)
	}
	return out
}

// fail pulls a page of the site and expects a permanent fault.
func (b *bench) fail(path string, kind fault.Kind, part string) {
	b.t.Helper()
	_, f := b.run(pull.Payload{URL: b.site.URL + path})
	if f == nil {
		b.t.Fatalf("%s did not fail", path)
	}
	if f.Kind != kind || !f.Permanent || !strings.Contains(f.Message, part) {
		b.t.Errorf("%s: %v %q, permanent %v; want %v with %q, permanent", path, f.Kind, f.Message, f.Permanent, kind, part)
	}
}

func (b *bench) open() feedstore.Store {
	b.t.Helper()
	store, err := feedstore.Open(b.t.Context(), b.store, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return store
}

// find returns the stored feed at a page of the site.
func (b *bench) find(path string) (feed.Feed, error) {
	b.t.Helper()
	return b.open().Find(b.t.Context(), feed.Ref{URL: b.site.URL + path})
}

// Every format ends as stored entries, whatever the labels say.
func TestFormats(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(rss("G", 1, 2)))
	_ = w.Close()
	cyrillic := "\xcf\xf0\xe8\xe2\xe5\xf2" // Привет in windows-1251
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		body := map[string]string{
			"/rss": rss("R", 2, 1), "/gzip": packed.String(), "/lie": rss("L", 1),
			"/atom":  `<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry><id>1</id><title>x</title></entry></feed>`,
			"/json":  `{"version":"https://jsonfeed.org/version/1.1","title":"J","items":[{"id":"1","content_text":"x"}]}`,
			"/label": `<?xml version="1.0" encoding="windows-1251"?><rss><channel><title>` + cyrillic + `</title><item><guid>1</guid></item></channel></rss>`,
			"/octet": rss("O", 1),
		}[r.URL.Path]
		switch r.URL.Path {
		case "/lie":
			w.Header().Set("Content-Encoding", "gzip")
		case "/octet":
			w.Header().Set("Content-Type", "application/octet-stream")
		case "/label":
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		}
		_, _ = w.Write([]byte(body))
	}, nil)
	for path, c := range map[string]struct {
		title    string
		entries  int
		warnings int
	}{
		"/rss": {"R", 2, 0}, "/atom": {"A", 1, 0}, "/json": {"J", 1, 0}, "/gzip": {"G", 2, 0}, "/lie": {"L", 1, 1}, "/label": {"Привет", 1, 1}, "/octet": {"O", 1, 0},
	} {
		out := b.pull(path, feed.StatusNew, c.entries, 0)
		if out.Title != c.title || out.Entries != c.entries || (len(out.Warnings) > 0) != (c.warnings > 0) || out.NextFetch == nil || out.FeedID == 0 ||
			out.URL != b.site.URL+path || out.FinalURL != b.site.URL+path {
			t.Errorf("%s: %+v", path, out)
		}
	}
}

// The exact validators go back, the newest are kept after 200 and 304, an equal body is unchanged, new content counts whatever
// its ETag, and force asks without conditions.
func TestConditions(t *testing.T) {
	t.Parallel()
	var step atomic.Int32
	seen := make(chan string, 10)
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("If-None-Match") + " " + r.Header.Get("If-Modified-Since")
		switch step.Add(1) {
		case 1:
			w.Header().Set("ETag", `W/"a-gzip"`)
			w.Header().Set("Last-Modified", "some day")
			_, _ = w.Write([]byte(rss("T", 1)))
		case 2:
			w.Header().Set("ETag", `"b"`)
			w.WriteHeader(http.StatusNotModified)
		case 3:
			w.Header().Set("ETag", `"c"`)
			_, _ = w.Write([]byte(rss("T", 1)))
		case 4:
			w.Header().Set("ETag", `"c"`)
			_, _ = w.Write([]byte(rss("T", 2, 1)))
		default:
			w.Header().Set("ETag", `"d"`)
			_, _ = w.Write([]byte(strings.ReplaceAll(rss("T", 2, 1), "Post 2", "Post II")))
		}
	}, nil)
	b.pull("/f", feed.StatusNew, 1, 0)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	b.pull("/f", feed.StatusUnchanged, 0, 0)
	b.pull("/f", feed.StatusUpdated, 1, 0)
	id := b.pull("/f", feed.StatusUpdated, 0, 1).FeedID
	if out, f := b.run(map[string]any{"feed_id": id, "force": true}); f != nil || out.Status != feed.StatusUnchanged || out.Entries != 2 {
		t.Errorf("forced: %+v, %v", out, f)
	}
	for i, want := range []string{" ", `W/"a-gzip" some day`, `"b" some day`, `"c" `, `"c" `, " "} {
		if got := <-seen; got != want {
			t.Errorf("request %d carries %q, want %q", i+1, got, want)
		}
	}
}

// A redirect is followed, a permanent one moves the feed only after it has held, and the feed is found at both addresses.
func TestMoves(t *testing.T) {
	t.Parallel()
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/301":
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		case "/302":
			http.Redirect(w, r, "/new2", http.StatusFound)
		default:
			_, _ = w.Write([]byte(rss("T", 1)))
		}
	}, map[string]any{"move_after": "1ms"})
	first := b.pull("/301", feed.StatusNew, 1, 0)
	if first.URL != b.site.URL+"/301" || first.FinalURL != b.site.URL+"/new" {
		t.Errorf("first: %+v", first)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		out, f := b.run(pull.Payload{URL: b.site.URL + "/301"})
		if f != nil || time.Now().After(deadline) {
			t.Fatalf("it does not move: %+v, %v", out, f)
		}
		if out.Status == feed.StatusMoved && out.URL == b.site.URL+"/new" && out.FeedID == first.FeedID {
			break
		}
	}
	if again := b.pull("/301", feed.StatusUnchanged, 0, 0); again.FeedID != first.FeedID || again.URL != b.site.URL+"/new" {
		t.Errorf("at the old address: %+v", again)
	}
	b.pull("/302", feed.StatusNew, 1, 0)
	if out := b.pull("/302", feed.StatusUnchanged, 0, 0); out.URL != b.site.URL+"/302" {
		t.Errorf("a temporary redirect moved the feed: %+v", out)
	}
}

// Each failure is a permanent fault of its kind, with a penalty and a row in the status log, and keeps the entries.
func TestFailures(t *testing.T) {
	t.Parallel()
	bomb := new(bytes.Buffer)
	w := gzip.NewWriter(bomb)
	_, _ = w.Write(make([]byte, 4<<20))
	_ = w.Close()
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404", "/500", "/429":
			w.Header().Set("Retry-After", "86400")
			var code int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
			w.WriteHeader(code)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		case "/challenge":
			w.Header().Set("Cf-Mitigated", "challenge")
			_, _ = w.Write([]byte("<html><title>Just a moment...</title></html>"))
		case "/page":
			_, _ = w.Write([]byte("<!doctype html><title>Home</title>"))
		case "/broken":
			_, _ = w.Write([]byte("<rss><channel><item><title>x"))
		case "/bomb":
			_, _ = w.Write(bomb.Bytes())
		case "/drip":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}, map[string]any{"timeout": "1s", "max_bytes": "1MiB"})
	for path, c := range map[string]struct {
		kind fault.Kind
		part string
	}{
		"/404": {fault.HTTPStatus, "404 Not Found"}, "/500": {fault.HTTPStatus, "500"}, "/429": {fault.HTTPStatus, "429"}, "/304": {fault.HTTPStatus, "304"},
		"/challenge": {fault.WrongContent, "Cloudflare challenge"}, "/page": {fault.WrongContent, `web page ("Home")`}, "/broken": {fault.Unreadable, "broken"},
		"/empty": {fault.Unreadable, "empty"}, "/bomb": {fault.TooLarge, "max_bytes"}, "/drip": {fault.Unreachable, "timeout"},
	} {
		b.fail(path, c.kind, c.part)
		f, err := b.find(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		pause := f.PenaltyUntil.Sub(f.CheckedAt).Round(time.Second)
		want := 30 * time.Minute
		if path == "/404" || path == "/500" || path == "/429" {
			want = 24 * time.Hour // Retry-After
		}
		if f.Failures != 1 || pause != want || f.ErrorKind != c.kind.String() || f.State != feed.Active {
			t.Errorf("%s: pause %v, want %v: %+v", path, pause, want, f)
		}
		rows, err := b.open().Log(t.Context(), f.ID, 10)
		if err != nil || len(rows) != 1 || rows[0].Status != feed.StatusFailed || !strings.Contains(rows[0].Message, c.part) {
			t.Errorf("%s: the log is %+v, %v", path, rows, err)
		}
	}
	b.site.Close()
	b.fail("/404", fault.Unreachable, "does not answer")
	if f, err := b.find("/404"); err != nil || f.Failures != 2 {
		t.Errorf("after the second failure: %+v, %v", f, err)
	}
}

// A 410 is a result, not a failure: the feed is gone and not due, its entries stay, and a later answer brings it back.
func TestGone(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	b := start(t, func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusGone)
			return
		}
		_, _ = w.Write([]byte(rss("T", 1)))
	}, nil)
	b.pull("/f", feed.StatusNew, 1, 0)
	gone.Store(true)
	if out := b.pull("/f", feed.StatusGone, 0, 0); out.NextFetch != nil || out.Entries != 1 {
		t.Errorf("gone: %+v", out)
	}
	gone.Store(false)
	if out := b.pull("/f", feed.StatusUnchanged, 0, 0); out.NextFetch == nil {
		t.Errorf("back: %+v", out)
	}
}

// A refused address, also behind a redirect, names the address and the option; it does not become a feed.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/in" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusMovedPermanently)
			return
		}
		_, _ = w.Write([]byte(rss("T", 1)))
	}, nil)
	b.fail("/in", fault.Refused, "169.254.169.254:80")
	if _, err := b.find("/in"); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("the refused address became a feed: %v", err)
	}
	_, f := b.run(pull.Payload{URL: strings.Replace(b.site.URL, "127.0.0.1", "127.0.0.2", 1)})
	if f == nil || f.Kind != fault.Refused || !f.Permanent || !strings.Contains(f.Message, "allow_networks") || !strings.Contains(f.Message, "127.0.0.2") {
		t.Errorf("127.0.0.2: %v", f)
	}
}

// A payload that names no feed, or two, or an unknown one, is a permanent fault that says so.
func TestPayloads(t *testing.T) {
	t.Parallel()
	b := start(t, http.NotFound, nil)
	for payload, part := range map[string]string{
		`{}`: "exactly one", `{"url":"http://a/","feed_id":1}`: "exactly one", `{"feed_id":99}`: "no feed 99", `{"url":7}`: "url",
		`{"url":"example.com"}`: "scheme",
	} {
		if _, f := b.run(json.RawMessage(payload), sdktest.Unchecked()); f == nil || f.Kind != fault.InvalidPayload || !f.Permanent || !strings.Contains(f.Message, part) {
			t.Errorf("%s: %v, want %q", payload, f, part)
		}
	}
}

// The payload's schema lets through exactly what a task may be, and names the field that is wrong.
func TestSchema(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, pull.Program(), sdktest.Unconfigured())
	s, err := schema.Parse(worker.Describe().GetPayloadSchema())
	if err != nil {
		t.Fatal(err)
	}
	for payload, part := range map[string]string{
		`{"url":"http://a/"}`: "", `{"url":"HTTPS://a/","force":true}`: "", `{"feed_id":1}`: "", `{}`: "url", `{"ulr":"x"}`: "ulr",
		`{"url":"http://a/","feed_id":1}`: "url", `{"url":"x"}`: "url", `{"url":7}`: "url", `{"feed_id":0}`: "feed_id", `{"feed_id":"1"}`: "feed_id",
		`{"feed_id":1.5}`: "feed_id", `{"feed_id":1,"force":"yes"}`: "force", `{"feed_id":1,"x":1}`: "x: no such field", `{"url":"file:///etc/passwd"}`: "url",
	} {
		err := s.Check([]byte(payload))
		if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", payload, err, part)
		}
	}
}

// Many tasks for one feed at once, in several processes' worth of workers, make one feed and no duplicate.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(rss("T", 9, 8, 7, 6, 5, 4, 3, 2, 1)))
	}, nil)
	options := sdktest.Options(t, map[string]any{"store": b.store, "allow_networks": []string{"127.0.0.1/32"}, "icons": false})
	workers := []*sdktest.Worker{b.worker, sdktest.Start(t, pull.Program(), options), sdktest.Start(t, pull.Program(), options)}
	var wg sync.WaitGroup
	var fresh atomic.Int64
	for i := range 24 {
		wg.Go(func() {
			raw, err := workers[i%len(workers)].Run(t.Context(), pull.Payload{URL: b.site.URL + "/f"})
			var out pull.Result
			if err == nil {
				err = json.Unmarshal(raw, &out)
			}
			if err != nil {
				t.Error(err)
			}
			fresh.Add(int64(out.NewEntries))
		})
	}
	wg.Wait()
	if out := b.pull("/f", feed.StatusUnchanged, 0, 0); out.Entries != 9 || fresh.Load() != 9 || out.FeedID != 1 {
		t.Errorf("feed %d has %d entries, %d were reported as new", out.FeedID, out.Entries, fresh.Load())
	}
}

// A task that is cancelled ends as cancelled and costs the feed nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	b := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, nil)
	run := b.worker.Begin(pull.Payload{URL: b.site.URL + "/f"})
	<-asked
	run.Cancel("cancelled")
	var f *fault.Fault
	if _, err := run.Wait(); !errors.As(err, &f) || f.Kind != fault.Cancelled {
		t.Errorf("the end is %v", err)
	}
	if _, err := b.find("/f"); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("the feed was recorded: %v", err)
	}
}

// Each mistake in the options is told before the first task, with what is allowed.
func TestOptions(t *testing.T) {
	t.Parallel()
	for options, part := range map[string]string{
		`{"stoer":"x"}`: `unknown option "stoer": allowed are allow_networks, icons, interval, max_bytes`, `{"store":"mysql:x"}`: "sqlite",
		`{"timeout":"5"}`: "option timeout", `{"timeout":5}`: "option timeout", `{"max_bytes":"5 apples"}`: "option max_bytes", `{"max_bytes":"2GiB"}`: "1GiB",
		`{"allow_networks":["home"]}`: "allow_networks", `{"allow_networks":"::1"}`: "list", `[]`: "object", `{"penalty_first":"2d"}`: "penalty_max",
		`{"icons":"no"}`: "option icons", `{"user_agent":"a\nb"}`: "one line",
	} {
		worker := sdktest.Start(t, pull.Program(), sdktest.Unconfigured(), sdktest.AnyExit())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		config := sdk.Config{Queue: "feed-pull", Manager: "test", Slots: 1, Options: json.RawMessage(options)}
		if err := worker.Configure(ctx, config); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", options, err, part)
		}
		cancel()
	}
	b := start(t, http.NotFound, map[string]any{
		"timeout": "30s", "max_bytes": 2048, "user_agent": "X/1", "interval": "10m", "penalty_first": "1h", "penalty_max": "1d", "move_after": "2d",
	})
	b.fail("/", fault.HTTPStatus, "404")
}
